import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Database } from '@customer-authorization/service/grant';
import { ServiceUnavailableException } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { request, type TestResponse } from './http-client.js';
import { REQUEST_START } from './recorded-traffic.js';
import { type Method, replaceMethod, thenRestore } from './replace-method.js';
import type { TestService } from './test-service.js';

export const REQUESTS_PER_RACE = 20;
/** Within this time a service in another process reads the headers of all requests of a race. */
export const RACE_START_MS = 200;
const RACE_HEADER = 'x-race';

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
  const raceId = crypto.randomUUID();
  const started = arrival(raceId, texts.length);
  const send = (text: string, index: number) => {
    const body = new ReadableStream({
      async start(stream) {
        stream.enqueue(Buffer.from(text.slice(0, 1)));
        await started;
        stream.enqueue(Buffer.from(text.slice(1)));
        stream.close();
      },
    });
    const init = { method: 'POST', headers: { ...headers, [RACE_HEADER]: raceId }, body, duplex: 'half' as const };
    return request(`${services[index % services.length]?.url}${path}`, init);
  };
  return Promise.all(texts.map(send));
}

/**
 * Resolves when services of this process have read the headers of all requests, at the latest after `RACE_START_MS`.
 */
async function arrival(raceId: string, count: number): Promise<void> {
  const allArrived = new AbortController();
  let arrivedCount = 0;
  const onRequest = (message: unknown) => {
    const { request } = message as { request: IncomingMessage };
    if (request.headers[RACE_HEADER] === raceId && ++arrivedCount === count) allArrived.abort();
  };
  subscribe(REQUEST_START, onRequest);
  await sleep(RACE_START_MS, undefined, { signal: allArrived.signal }).catch(() => undefined);
  unsubscribe(REQUEST_START, onRequest);
}

/** Long enough that the requests of a race send their next statements. */
const PAUSE_MS = 20;

/**
 * Does work while each request pauses after each of its statements, so that the statements of concurrent requests
 * alternate. Without the pauses SQLite could execute all statements of one request before those of the next.
 */
export function withInterleavedStatements<Result>(services: TestService[], work: () => Promise<Result>) {
  const pausing =
    (send: Method): Method =>
    async (...parameters) => {
      const result = await send(...parameters);
      await sleep(PAUSE_MS);
      return result;
    };
  return withStatements(services, pausing, work);
}

/** Does work while each statement fails as in an outage of the database. */
export function withoutDatabase<Result>(service: TestService, work: () => Promise<Result>): Promise<Result> {
  return withStatements([service], () => () => Promise.reject(new ServiceUnavailableException()), work);
}

function withStatements<Result>(
  services: TestService[],
  change: (send: Method) => Method,
  work: () => Promise<Result>,
) {
  const replaced = services.flatMap(({ application }) => [
    ...['select', 'insert', 'execute'].map((name) => replaceMethod(application.get(Database), name, change)),
    // the statements of repositories and query builders
    replaceMethod(application.get(DataSource), 'sendStatement', change),
  ]);
  return thenRestore(replaced, work);
}
