import { readFile } from 'node:fs/promises';
import { ConversationStore } from './conversation-store.js';
import { EventConsumer } from './event-consumer.js';

const {
  ASSERTION_FILE,
  EVENTS_URL,
  RESOURCE_SERVER_ID,
  RESOURCE_SERVER_SECRET,
  STORE = 'conversations.json',
  EVENT_DAYS = '7',
} = process.env;

const store = new ConversationStore(STORE);
const consumer = new EventConsumer({
  url: EVENTS_URL ?? 'http://localhost:3001/oauth2/events',
  id: RESOURCE_SERVER_ID ?? 'chat-api',
  secret: RESOURCE_SERVER_SECRET ?? '',
  assertion: ASSERTION_FILE && (async () => (await readFile(ASSERTION_FILE, 'utf8')).trim()),
  store,
  eventDays: Number(EVENT_DAYS),
});

const stopping = new AbortController();
for (const name of ['SIGTERM', 'SIGINT']) process.once(name, () => stopping.abort());
await consumer.follow(stopping.signal);
