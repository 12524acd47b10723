// Package webhook sends messages as Standard Webhooks 1.0 asks
// (https://www.standardwebhooks.com): signed, retried on its schedule, and never to
// an address that the receiver's URL should not reach.
//
// The package keeps no state. Its caller keeps the messages, each with its
// [Attempts], as due work, and does this for each message that is due:
//
//	outcome := sender.Send(ctx, endpoint, message)
//	attempts = attempts.Next(outcome, now, rand.Float64())
//
// Then the caller stores the attempts, which say when the message is due again or
// how it ended. A message can arrive more than once, always with the same id.
//
// # Where messages may go
//
// The URL of an endpoint can come from a person who must not reach the services
// around the bot, many of which trust their own network. So the address is judged
// and not the name: in the dialer's Control, after name resolution, immediately
// before the connection. A check before name resolution would not do, because the
// name can have another address a moment later. Every message has a new connection,
// because one that is used again would not be judged again.
//
// The environment's HTTP_PROXY is not used. With a proxy, the address that is dialed
// is that of the proxy, so that nothing is left to judge, and a proxy for the bot's
// other traffic can usually reach internal addresses. [Config.Proxy] is for a proxy
// that refuses internal addresses itself.
package webhook
