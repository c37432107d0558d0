import { once } from 'node:events';
import { request as forward, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { generate } from 'selfsigned';

/** A request as it arrived at the service's address, before anything else saw it. */
export interface SeenRequest {
  method: string;
  path: string;
  origin: string | undefined;
  /** How the browser relates the page to this address: `cross-site` makes it a third party. */
  site: string | string[] | undefined;
  cookie: string | undefined;
}

/** TLS in front of the service, as a cluster has it; under any other host name it serves the pages of customers. */
export interface HttpsProxy {
  port: number;
  /** What came for the service, in order. */
  seen: SeenRequest[];
  stop(): Promise<void>;
}

const PAGE = '<!doctype html><title>A page with a chat</title>';

/**
 * @param host the name under which the service is reached
 * @param target where it listens, over plain HTTP
 */
export async function startHttpsProxy(host: string, target: string): Promise<HttpsProxy> {
  const seen: SeenRequest[] = [];
  const server = createServer(await certificate(host), (incoming, outgoing) => {
    if (incoming.headers.host !== host) return void outgoing.setHeader('Content-Type', 'text/html').end(PAGE);
    const { method = '', url: path = '', headers } = incoming;
    seen.push({ method, path, origin: headers.origin, site: headers['sec-fetch-site'], cookie: headers.cookie });
    pass(incoming, outgoing, target);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return { port: (server.address() as AddressInfo).port, seen, stop };
}

/** Made for each run and kept in memory: there is no key in the repository. */
async function certificate(host: string): Promise<{ key: string; cert: string }> {
  const { private: key, cert } = await generate([{ name: 'commonName', value: host }], { keyType: 'ec' });
  return { key, cert };
}

function pass(incoming: IncomingMessage, outgoing: ServerResponse, target: string): void {
  const { method, headers, url = '/' } = incoming;
  const onward = forward(target + url, { method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
    answer.pipe(outgoing);
  });
  onward.once('error', () => outgoing.destroy());
  incoming.pipe(onward);
}
