import { once } from 'node:events';
import { request as forward, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { generate } from 'selfsigned';

/** A request to the service as the proxy received it. */
export interface SeenRequest {
  method: string;
  path: string;
  origin: string | undefined;
  /** `Sec-Fetch-Site`. `cross-site` means that the service is a third party for the page. */
  site: string | string[] | undefined;
  cookie: string | undefined;
}

/** TLS in front of the service, as in a cluster. For other host names the proxy serves pages of applications. */
export interface HttpsProxy {
  port: number;
  /** The requests to the service, in order. */
  seen: SeenRequest[];
  stop(): Promise<void>;
}

const PAGE = '<!doctype html><title>A page with a chat</title>';

/**
 * @param host the host name of the service
 * @param target the URL of the service, over plain HTTP
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

/** Generated in memory for each run, so that the repository contains no key. */
async function certificate(host: string): Promise<{ key: string; cert: string }> {
  const { private: key, cert } = await generate([{ name: 'commonName', value: host }], { keyType: 'ec' });
  return { key, cert };
}

function pass(incoming: IncomingMessage, outgoing: ServerResponse, target: string): void {
  const { method, headers, url = '/' } = incoming;
  const onward = forward(target + url, { method, headers }, (response) => {
    outgoing.writeHead(response.statusCode ?? 502, response.rawHeaders);
    response.pipe(outgoing);
  });
  onward.once('error', () => outgoing.destroy());
  incoming.pipe(onward);
}
