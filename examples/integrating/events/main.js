import { ConversationStore } from './conversation-store.js';
import { EventConsumer } from './event-consumer.js';

const {
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
  store,
  eventDays: Number(EVENT_DAYS),
});

const stopping = new AbortController();
for (const name of ['SIGTERM', 'SIGINT']) process.once(name, () => stopping.abort());
await consumer.follow(stopping.signal);
