import { setTimeout as sleep } from 'node:timers/promises';
import { request, type TestResponse } from './http-client.js';

/** The default number of requests in a race. */
export const REQUESTS_PER_RACE = 20;
/** Within this time a service reads the headers of all requests of a race. */
export const RACE_START_MS = 200;

/** Sends the same request many times, to the services in turn, as `raceOfBodies` does. */
export function race(
  services: { url: string }[],
  path: string,
  text: string,
  size = REQUESTS_PER_RACE,
  headers: Record<string, string> = {},
): Promise<TestResponse[]> {
  return raceOfBodies(services, path, Array<string>(size).fill(text), headers);
}

/**
 * Sends one request for each body, to the services in turn. Each body is completed only after all requests have
 * arrived, so that the service processes them at the same time.
 */
export function raceOfBodies(
  services: { url: string }[],
  path: string,
  texts: string[],
  headers: Record<string, string> = {},
): Promise<TestResponse[]> {
  const started = sleep(RACE_START_MS);
  const send = (text: string, index: number) => {
    const { url } = services[index % services.length] as { url: string };
    const body = new ReadableStream({
      async start(stream) {
        stream.enqueue(Buffer.from(text.slice(0, 1)));
        await started;
        stream.enqueue(Buffer.from(text.slice(1)));
        stream.close();
      },
    });
    return request(url + path, { method: 'POST', headers, body, duplex: 'half' });
  };
  return Promise.all(texts.map(send));
}
