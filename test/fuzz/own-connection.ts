import { connect } from 'node:net';
import { type Reply, takeReply } from './reply.js';

/** If nothing arrives for this time after a response, the fuzzer half-closes the connection. */
const RESPONSE_IDLE_MS = 250;
/** The idle time before the first response to bytes that may be an incomplete request. */
export const FRAGMENT_IDLE_MS = 1_000;

export interface Exchange {
  replies: Reply[];
  /** Whether the service has reset the connection instead of closing it. */
  wasReset: boolean;
}

/**
 * Sends bytes on a separate connection, and reads all responses until the service closes it. The fuzzer half-closes an
 * idle connection, so that the service does not wait for the rest of an incomplete request.
 *
 * @throws Error if the service does not close the connection in time, or does not respond with HTTP
 */
export function exchangeBytes(url: URL, bytes: Buffer, timeoutMs: number, idleMs = timeoutMs): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(url.port), host: url.hostname, allowHalfOpen: true });
    let received: Buffer = Buffer.alloc(0);
    let wasReset = false;
    let idleTimer = setTimeout(() => socket.end(), idleMs);
    let quarters = 0;
    // Quarters of the timeout are counted, so that a pause of the fuzzer itself counts as one quarter only.
    const limit = setInterval(() => {
      if (++quarters < 4) return;
      const what =
        received.length > 0 ? `not closed after ${JSON.stringify(received.toString('latin1'))}` : 'no response';
      reject(new Error(`${what} in ${timeoutMs} ms`));
      clearInterval(limit);
      socket.destroy();
    }, timeoutMs / 4);
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      quarters = 0;
      clearTimeout(idleTimer);
      idleTimer = setTimeout(() => socket.end(), isInterim(received) ? timeoutMs : RESPONSE_IDLE_MS);
    });
    socket.on('end', () => socket.end());
    socket.on('error', () => {
      wasReset = true;
    });
    socket.on('close', () => {
      clearTimeout(idleTimer);
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

/** Whether only `100 Continue` arrived. The response follows when the service has done its work. */
const isInterim = (received: Buffer): boolean => received.toString('latin1') === 'HTTP/1.1 100 Continue\r\n\r\n';

function allReplies(bytes: Buffer): Reply[] {
  const replies: Reply[] = [];
  let rest = bytes;
  while (rest.length > 0) {
    const taken = takeReply(rest, false);
    if (!taken) throw new Error(`an incomplete response: ${JSON.stringify(rest.toString('latin1').slice(0, 300))}`);
    rest = rest.subarray(taken.length);
    if (taken.reply.status >= 200) replies.push(taken.reply);
  }
  return replies;
}
