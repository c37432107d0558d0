// @ts-check
/** `npm start`: builds the service and the try-it page if a source changed, and runs both in this process. */
import { existsSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { buildTryItIfStale } from './build.js';

if (existsSync('.env')) loadEnvFile('.env');
buildTryItIfStale();
const { runTryIt } = await import('@customer-authorization/try-it');
await runTryIt();
// npm sends the signal of Ctrl-C a second time, which would end the process before it has stopped
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {});
