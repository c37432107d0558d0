/** Serves the pages of browser/ and second-device/ on a developer's machine: `node examples/integrating/serve.js [port]`. */
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import express from 'express';
import { moveRooms } from './second-device/relay.js';

const folderOf = (name) => dirname(fileURLToPath(import.meta.resolve(name)));
const app = express().use('/rooms', moveRooms());
for (const name of ['browser', 'second-device']) app.use(`/${name}`, express.static(`${import.meta.dirname}/${name}`));
app.use('/browser-client', express.static(folderOf('@customer-authorization/browser-client')));
app.use('/qr', express.static(folderOf('qr')));
app.get('/', (_request, response) => response.redirect('/browser/'));

const server = app.listen(Number(process.argv[2] ?? 8080), 'localhost', () => {
  process.stdout.write(`Open http://localhost:${server.address().port}\n`);
});
