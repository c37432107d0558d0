// @ts-check
/** `npm start`: builds what has changed, then becomes the service. */
import { existsSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { buildIfStale } from './build.js';

if (existsSync('.env')) loadEnvFile('.env');
await buildIfStale();
await import(new URL('../dist/main.js', import.meta.url).href);
