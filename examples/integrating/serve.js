/** Serves the files of browser/ on a developer's machine: `node examples/integrating/serve.js [port]`. */
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { basename, extname } from 'node:path';

const TYPES = { '.html': 'text/html', '.js': 'text/javascript' };

const server = createServer(async ({ url }, response) => {
  const name = basename(url) || 'index.html';
  const content = await readFile(new URL(`browser/${name}`, import.meta.url)).catch(() => null);
  response.writeHead(content ? 200 : 404, { 'Content-Type': TYPES[extname(name)] ?? 'text/plain' }).end(content);
});
server.listen(Number(process.argv[2] ?? 8080), 'localhost', () => {
  process.stdout.write(`Open http://localhost:${server.address().port}\n`);
});
