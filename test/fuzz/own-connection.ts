import { connect } from 'node:net';
import { type Reply, takeReply } from './reply.js';

/** Milliseconds of silence after an answer, after which we say that nothing more comes. */
const PAUSE = 250;
/** The same where nothing was answered: the bytes may be half a request. A whole one would be given up by that. */
export const PAUSE_OF_FRAGMENTS = 1_000;

export interface Exchange {
  replies: Reply[];
  /** Whether the service cut the connection instead of closing it. */
  wasReset: boolean;
}

/**
 * Sends bytes on a connection of their own, and reads every answer until the service closes it. When nothing has come for
 * a while we end our half, so that the service need not wait for the rest of what was cut off.
 *
 * @throws Error when it does not close in time, or what it says is no HTTP
 */
export function exchangeBytes(url: URL, bytes: Buffer, patience: number, silence = patience): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(url.port), host: url.hostname, allowHalfOpen: true });
    let received: Buffer = Buffer.alloc(0);
    let wasReset = false;
    let pause = setTimeout(() => socket.end(), silence);
    let quarters = 0;
    // in quarters, so that a pause of our own process is no pause of the service
    const limit = setInterval(() => {
      if (++quarters < 4) return;
      const what =
        received.length > 0 ? `not closed after ${JSON.stringify(received.toString('latin1'))}` : 'not answered';
      reject(new Error(`${what} in ${patience} ms`));
      clearInterval(limit);
      socket.destroy();
    }, patience / 4);
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      quarters = 0;
      clearTimeout(pause);
      pause = setTimeout(() => socket.end(), PAUSE);
    });
    socket.on('end', () => socket.end());
    socket.on('error', () => {
      wasReset = true;
    });
    socket.on('close', () => {
      clearTimeout(pause);
      clearInterval(limit);
      try {
        resolve({ replies: allReplies(received), wasReset });
      } catch (error) {
        reject(error);
      }
    });
    socket.write(bytes);
  });
}

function allReplies(bytes: Buffer): Reply[] {
  const replies: Reply[] = [];
  let rest = bytes;
  while (rest.length > 0) {
    const taken = takeReply(rest, false);
    if (!taken) throw new Error(`an answer that is cut off: ${JSON.stringify(rest.toString('latin1').slice(0, 300))}`);
    rest = rest.subarray(taken.length);
    if (taken.reply.status >= 200) replies.push(taken.reply);
  }
  return replies;
}
