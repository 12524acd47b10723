// A small Slack app on the official framework: it asks people whether a
// release may go out. The tests of slacksim run it; it knows nothing of the
// simulator but an address.
import bolt from '@slack/bolt';

const env = (name) => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
};

const socketMode = Boolean(process.env.SLACK_APP_TOKEN);

const app = new bolt.App({
  token: env('SLACK_BOT_TOKEN'),
  ...(socketMode ? { socketMode, appToken: env('SLACK_APP_TOKEN') } : { signingSecret: env('SLACK_SIGNING_SECRET') }),
  clientOptions: { slackApiUrl: env('SLACK_API_URL') },
  logLevel: 'warn',
});

const plain = (text) => ({ type: 'plain_text', text });
const line = (text) => [{ type: 'section', text: { type: 'mrkdwn', text } }];

app.event('app_mention', async ({ event, say, client }) => {
  const wish = event.text.replace(/<@[^>]+>\s*/, '');
  await client.reactions.add({ channel: event.channel, timestamp: event.ts, name: 'eyes' });
  await say({
    thread_ts: event.ts,
    text: `May I: ${wish}?`,
    blocks: [
      ...line(`<@${event.user}> asks: *${wish}*`),
      {
        type: 'actions',
        block_id: 'decision',
        elements: [
          { type: 'button', action_id: 'approve', style: 'primary', text: plain('Approve'), value: wish },
          { type: 'button', action_id: 'deny', style: 'danger', text: plain('Deny…'), value: wish },
          { type: 'external_select', action_id: 'window', min_query_length: 1, placeholder: plain('Later') },
        ],
      },
    ],
  });
});

app.action('approve', async ({ ack, body, action, respond }) => {
  await ack();
  const text = `Approved by ${body.user.name}: ${action.value}`;
  await respond({ replace_original: true, text, blocks: line(text) });
});

app.action('deny', async ({ ack, body, action, client }) => {
  await ack();
  await client.views.open({
    trigger_id: body.trigger_id,
    view: {
      type: 'modal',
      callback_id: 'denial',
      private_metadata: JSON.stringify({ channel: body.channel.id, ts: body.message.ts, wish: action.value }),
      title: plain('Deny'),
      submit: plain('Deny'),
      close: plain('Cancel'),
      blocks: [
        {
          type: 'input',
          block_id: 'reason',
          label: plain('Reason'),
          element: { type: 'plain_text_input', action_id: 'text' },
        },
      ],
    },
  });
});

const windows = ['tonight', 'tomorrow', 'next week'];

app.options('window', async ({ ack, options }) => {
  const found = windows.filter((w) => w.includes(options.value));
  await ack({ options: found.map((w) => ({ text: plain(w), value: w })) });
});

app.action('window', async ({ ack, body, action, client }) => {
  await ack();
  const text = `Put off until ${action.selected_option.value} by ${body.user.name}`;
  await client.chat.update({ channel: body.channel.id, ts: body.message.ts, text, blocks: line(text) });
  const inAnHour = Math.floor(Date.now() / 1000) + 3600;
  await client.chat.scheduleMessage({ channel: body.channel.id, thread_ts: body.message.ts, post_at: inAnHour, text: 'Is it time?' });
});

app.shortcut('why', async ({ ack, shortcut, respond }) => {
  await ack();
  await respond({ text: `Because <@${shortcut.message.user}> wrote: ${shortcut.message.text}` });
});

app.event('app_home_opened', async ({ event, client }) => {
  const { channels } = await client.users.conversations({ types: 'public_channel' });
  if (channels.length === 0) throw new Error('the bot is in no channel');
  await client.views.publish({ user_id: event.user, view: { type: 'home', blocks: line('Nothing waits for you.') } });
});

app.view('denial', async ({ ack, body, view, client }) => {
  const reason = view.state.values.reason.text.value;
  if (reason.length < 8) {
    await ack({ response_action: 'errors', errors: { reason: 'Say more: eight characters at least.' } });
    return;
  }
  await ack();
  const { channel, ts, wish } = JSON.parse(view.private_metadata);
  const text = `Denied by ${body.user.name}: ${wish} (${reason})`;
  await client.chat.update({ channel, ts, text, blocks: line(text) });
  await client.chat.postEphemeral({ channel, user: body.user.id, text: 'Your reason was recorded.' });
});

app.command('/release', async ({ ack, command, respond }) => {
  if (!command.text) {
    await ack({ text: 'Say what: `/release payments`.' });
    return;
  }
  await ack({ response_type: 'in_channel', text: `Looking at ${command.text}.` });
  await respond({ text: `Only you see this: ${command.text} has no open request.` });
});

app.error(async (error) => {
  console.error(error);
});

if (socketMode) {
  await app.start();
  console.log('listening on port 0');
} else {
  const server = await app.start({ port: Number(process.env.PORT ?? 0), host: '127.0.0.1' });
  console.log(`listening on port ${server.address().port}`);
}
