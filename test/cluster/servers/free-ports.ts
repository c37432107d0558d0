import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below the ports that the kernel gives to sockets, so that a killed node finds its ports free again. */
const FIRST_PORT = 15_000;
const LAST_PORT = 30_000;

/** The first port of each of `count` free ranges with `size` ports. */
export async function freePortRanges(count: number, size: number): Promise<number[]> {
  for (;;) {
    const base = randomInt(FIRST_PORT, LAST_PORT);
    const ports = Array.from({ length: count * size }, (_, index) => base + index);
    const free = await Promise.all(ports.map(isFree));
    if (free.every(Boolean)) return ports.filter((_, index) => index % size === 0);
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
      .once('error', () => resolve(false))
      .listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
