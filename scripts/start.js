// @ts-check
/** `npm start`: builds the service if a source changed, and runs it in this process, with the try-it page. */
import { existsSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { buildIfStale } from './build.js';

if (existsSync('.env')) loadEnvFile('.env');
const { TRY_IT, TRY_IT_FILE, NODE_ENV } = process.env;
if (!TRY_IT && !TRY_IT_FILE && NODE_ENV !== 'production') process.env.TRY_IT = 'true';
await buildIfStale();
await import(new URL('../dist/main.js', import.meta.url).href);
