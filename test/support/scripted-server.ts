import { createServer } from 'node:http';
import { onTestFinished } from 'vitest';
import { listen } from './listen.js';

/**
 * What the server does with a request: respond with this status, close the connection, never respond, respond 429 for a
 * minute, respond 502 with HTML as a proxy does, or respond with this JSON, by default with 400.
 */
export type ScriptedStep =
  | number
  | 'closed'
  | 'silent'
  | 'limited'
  | 'proxy'
  | { status?: number; [field: string]: unknown };

/** A server that responds to its requests in turn as a list of steps says. It stops when its test ends. */
export interface ScriptedServer {
  url: string;
  requests(): number;
}

export async function startScriptedServer(script: ScriptedStep[]): Promise<ScriptedServer> {
  let requests = 0;
  const server = createServer((request, response) => {
    const step = script[requests++] ?? 500;
    if (step === 'closed') return void request.socket.destroy();
    if (step === 'silent') return;
    if (step === 'limited') return void response.writeHead(429, { 'Retry-After': '60' }).end('{}');
    if (step === 'proxy') return void response.writeHead(502).end('<h1>Bad Gateway</h1>');
    if (typeof step === 'object') return void response.writeHead(step.status ?? 400).end(JSON.stringify(step));
    response.writeHead(step, { 'Retry-After': '1' }).end('{}');
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: await listen(server), requests: () => requests };
}
