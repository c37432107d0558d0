// @ts-check
/** `npm run cli -- COMMAND`: runs the operator's commands during development. */
import { existsSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { buildIfStale } from './build.js';

if (existsSync('.env')) loadEnvFile('.env');
await buildIfStale();
await import(new URL('../dist/cli.js', import.meta.url).href);
