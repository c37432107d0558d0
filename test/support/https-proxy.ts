import { once } from 'node:events';
import { request as forward, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { generate } from 'selfsigned';
import { listen } from './listen.js';

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
  /** Forwards the next POST to a path, but not its response. Resolves to its status when the service has responded. */
  loseResponse(path: string): Promise<number | undefined>;
  stop(): Promise<void>;
}

const PAGE = '<!doctype html><title>A page with a chat</title>';

/**
 * @param host the host name of the service
 * @param target the URL of the service, over plain HTTP. A function selects a service for each request.
 * @param callbacks host names of server applications, and the URL to which each one redirects the browser
 * @param scriptOf the script at a path of any other host; undefined for a page
 */
export async function startHttpsProxy(
  host: string,
  target: string | (() => string),
  callbacks: Record<string, string> = {},
  scriptOf: (path: string) => string | undefined = () => undefined,
): Promise<HttpsProxy> {
  const seen: SeenRequest[] = [];
  const lost = new Map<string, (status: number | undefined) => void>();
  // in memory for each run, so that the repository contains no key
  const { private: key, cert } = await generate([{ name: 'commonName', value: host }], { keyType: 'ec' });
  const server = createServer({ key, cert }, (incoming, outgoing) => {
    const { method = '', url: path = '', headers } = incoming;
    const landingUrl = callbacks[headers.host ?? ''];
    if (landingUrl) return void outgoing.writeHead(302, { Location: landingUrl + path }).end();
    if (headers.host !== host) {
      const script = scriptOf(path);
      return void outgoing.setHeader('Content-Type', script ? 'text/javascript' : 'text/html').end(script ?? PAGE);
    }
    seen.push({ method, path, origin: headers.origin, site: headers['sec-fetch-site'], cookie: headers.cookie });
    const onLost = method === 'POST' ? lost.get(path) : undefined;
    if (onLost) lost.delete(path);
    pass(incoming, outgoing, typeof target === 'string' ? target : target(), onLost);
  });
  const stop = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  const loseResponse = (path: string) => new Promise<number | undefined>((resolve) => void lost.set(path, resolve));
  return { port: Number(new URL(await listen(server)).port), seen, loseResponse, stop };
}

function pass(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  target: string,
  onLost?: (status: number | undefined) => void,
): void {
  const { method, headers, url = '/' } = incoming;
  const onward = forward(target + url, { method, headers }, (response) => {
    if (onLost) return void onLost(response.resume().statusCode);
    outgoing.writeHead(response.statusCode ?? 502, response.rawHeaders);
    response.pipe(outgoing);
  });
  onward.once('error', () => outgoing.destroy());
  incoming.pipe(onward);
}
