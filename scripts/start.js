// @ts-check
/** `npm start`: builds the service if a source changed, and runs it in this process. */
import { existsSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { buildIfStale } from './build.js';

if (existsSync('.env')) loadEnvFile('.env');
await buildIfStale();
await import(new URL('../dist/main.js', import.meta.url).href);
