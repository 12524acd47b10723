// Package slacksim is a Slack workspace on loopback: a test fixture, and the
// engine of the demo. It is written from Slack's documented contract and is
// strict where Slack is strict, so that an app learns the limits here before
// Slack tells it. It is tuned to no client.
//
// # The story
//
// One app is installed in a workspace, or in several, or in an organization
// ([Config.Workspaces], [Config.Enterprise]). A person writes "@countersign drop
// the index" with [Server.PostAs]; the app gets a signed app_mention and
// answers through the Web API. Someone presses a button with
// [Server.Click]; the app gets block_actions, has three seconds, and may
// exchange the trigger_id for a modal. The person fills that in with
// [Server.SubmitView]. [Server.Messages] and [Server.Views] say what each
// person sees, ephemeral messages included. Everything that acts for a
// person is also JSON under /sim/, which is what the page at / uses.
//
//	sim := slacksim.New(slacksim.Config{})
//	srv := httptest.NewServer(sim)
//	sim.SetURLs(app+"/slack/events", app+"/slack/interactivity", app+"/slack/commands")
//	api := slack.New(sim.BotToken(), slack.OptionAPIURL(srv.URL+"/api/"))
//
// # Time
//
// The workspace's clock is Config.Now plus what [Server.Advance] added. It
// ages trigger_ids and response_urls and makes event retries due. The three
// seconds an app has to answer are real. Signatures carry Config.Now without
// what was added, so that an app with its own clock still accepts them.
//
// # Routes
//
//	/api/{method}               the Web API; the table in methods.go has every method
//	/oauth/v2/authorize         installs the app and sends the browser back
//	POST /response/{team}/{id}  response_urls
//	/link/                      connections of Socket Mode, see [Config.SocketMode]
//	/sim/                       the control API; docs/slacksim.md is its reference
//	/                           the page
//
// # Limits
//
//	signing v0, fresh for each attempt  docs.slack.dev/authentication/verifying-requests-from-slack
//	3 s to answer; clicks and commands  docs.slack.dev/interactivity/handling-user-interaction
//	  are never sent again
//	events: 3 retries after 0, 1 min    docs.slack.dev/apis/events-api
//	  and 5 min, x-slack-no-retry
//	commands not in threads             docs.slack.dev/interactivity/implementing-slash-commands
//	trigger_id: 3 s, one use; modals    docs.slack.dev/surfaces/modals
//	  stack to 3; a view has 250 KB
//	response_url: 5 uses in 30 min      docs.slack.dev/interactivity/handling-user-interaction
//	Socket Mode: ten connections, 3 s   docs.slack.dev/apis/events-api/using-socket-mode
//	  to acknowledge, in less than 20 KB
//	text: 40,000 is cut when posted,    docs.slack.dev/reference/methods/chat.postMessage
//	  4,000 is refused by chat.update   docs.slack.dev/reference/methods/chat.update
//	1 message per second and channel    docs.slack.dev/apis/web-api/rate-limits
//	Block Kit: package blockkit         docs.slack.dev/reference/block-kit
//
// Slack publishes no figure for the size of metadata and none for
// msg_blocks_too_long; 8,000 bytes and 13,200 characters stand in for them.
//
// # One package
//
// The workspace is one world behind one mutex, which every method of the Web
// API, every click and every delivery reads and changes. Socket Mode takes the
// same mutex in every function and shares its clock, log and faults. The rules of
// Block Kit and the page need nothing of it and are packages of their own.
package slacksim
