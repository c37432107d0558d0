import { Chat } from './chat.jsx';

/** A server component. It may come from a cache, because it knows no customer. */
export default function Page() {
  return <Chat />;
}
