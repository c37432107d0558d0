// @ts-check
/** A load of POSTs over kept-alive connections, each sending its next request when the last is answered. */
import { connect } from 'node:net';

/**
 * @param {{ port: number, connections: number, seconds: number, path: string, body: string, cookies?: string[] }} options
 *   `cookies`: Cookie headers, used in turn
 * @returns {Promise<{ requests: number, failed: number, p50: number, p99: number }>} times in milliseconds
 */
export async function load({ port, connections, seconds, path, body, cookies = [] }) {
  const end = performance.now() + seconds * 1000;
  /** @type {number[]} */
  const times = [];
  let failed = 0;
  let next = 0;
  const request = () => {
    const cookie = cookies.length > 0 ? `Cookie: ${cookies[next++ % cookies.length]}\r\n` : '';
    return `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${cookie}Content-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };
  const one = () =>
    new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1').setNoDelay(true);
      let received = '';
      let start = 0;
      const send = () => {
        received = '';
        start = performance.now();
        socket.write(request());
      };
      socket.once('error', reject);
      socket.once('connect', send);
      socket.on('data', (chunk) => {
        received += chunk.toString('latin1');
        if (!isWhole(received)) return;
        times.push(performance.now() - start);
        if (!received.startsWith('HTTP/1.1 200')) failed++;
        if (performance.now() < end) send();
        else resolve(socket.destroy());
      });
    });
  await Promise.all(Array.from({ length: connections }, one));
  times.sort((a, b) => a - b);
  const quantile = (/** @type {number} */ q) => times[Math.floor(times.length * q)] ?? 0;
  return { requests: times.length, failed, p50: quantile(0.5), p99: quantile(0.99) };
}

/** @param {string} answer */
function isWhole(answer) {
  const head = answer.indexOf('\r\n\r\n');
  if (head < 0) return false;
  const length = /content-length: (\d+)/i.exec(answer)?.[1] ?? '0';
  return answer.length >= head + 4 + Number(length);
}
