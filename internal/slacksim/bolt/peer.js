// The least that decides in response to a click, on the official framework: one
// script, as the floor of bot bench has it. `bot bench --peer` starts it.
import bolt from '@slack/bolt';
import { Redis } from 'ioredis';

const env = (name) => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
};

const url = new URL(env('REDIS_URL'));
const redis = url.protocol === 'unix:' ? new Redis({ path: url.pathname }) : new Redis(url.href);
redis.defineCommand('decide', {
  numberOfKeys: 3,
  lua: `
if redis.call('SET', KEYS[1], '1', 'NX', 'PX', 600000) then
  redis.call('HSET', KEYS[2], 'doc', ARGV[1], 'v', '2')
  redis.call('ZADD', KEYS[3], 1, ARGV[2])
end
return 1`,
});

const app = new bolt.App({
  token: env('SLACK_BOT_TOKEN'),
  signingSecret: env('SLACK_SIGNING_SECRET'),
  endpoints: '/slack/interactivity',
  clientOptions: { slackApiUrl: env('SLACK_API_URL') },
  logLevel: 'warn',
});

app.action(/./, async ({ ack, body, action }) => {
  const at = `countersign-bench-bolt-${process.pid}:{p}:`;
  const decision = JSON.stringify({ by: body.user.id, value: action.value, at: action.action_ts });
  await redis.decide(`${at}once:${action.value}${action.action_ts}`, at + action.value, `${at}due`, decision, action.value);
  await ack();
});

app.error(async (error) => {
  console.error(error);
  throw error; // the click is not answered with 200
});

process.stdin.resume().on('end', () => process.exit());

const server = await app.start({ port: 0, host: '127.0.0.1' });
console.log(`listening on port ${server.address().port}`);
