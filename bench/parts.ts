/**
 * `npm run bench:parts`: measures the ways to sign, to verify and to hash a token, in processor time of the process.
 * The service uses the first of each. Then imports the modules of the service one after the other in a cold process.
 * Takes some seconds.
 */
import { execFileSync } from 'node:child_process';
import { createHash, generateKeyPairSync, hash, sign, verify } from 'node:crypto';
import { join } from 'node:path';
import { derSignature, rawSignature } from '../src/access-token/access-tokens.js';
import type { Table } from './support/figures.js';
import { measureCalls, median, rounded } from './support/measure.js';
import { SERVICE } from './support/server.js';
import { benchmark } from './support/setup.js';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const TEXT = 'x'.repeat(600);
const DATA = Buffer.from(TEXT);
const SIGNATURE = rawSignature(sign('sha256', DATA, privateKey));
const dsaEncoding = 'ieee-p1363';
const WAYS = {
  'sign, DER converted to R and S': () => rawSignature(sign('sha256', DATA, privateKey)),
  'sign, ieee-p1363': () => sign('sha256', DATA, { key: privateKey, dsaEncoding }),
  'verify, R and S converted to DER': () => verify('sha256', DATA, publicKey, derSignature(SIGNATURE)),
  'verify, ieee-p1363': () => verify('sha256', DATA, { key: publicKey, dsaEncoding }, SIGNATURE),
  'SHA-256 by hash()': () => hash('sha256', TEXT),
  'SHA-256 by createHash()': () => createHash('sha256').update(TEXT).digest('hex'),
};

const START_COUNT = 5;
const MODULES = {
  NestJS: ['reflect-metadata', 'rxjs', '@nestjs/common', '@nestjs/core'],
  TypeORM: ['typeorm', '@nestjs/typeorm'],
  mysql2: ['mysql2'],
  Express: ['express', '@nestjs/platform-express', 'cookie-parser'],
  'class-validator, class-transformer': ['class-validator', 'class-transformer'],
  passport: ['passport', 'passport-http-bearer', '@nestjs/passport'],
  jose: ['jose'],
  pino: ['pino'],
  'prom-client': ['prom-client'],
  'lru-cache, uuid, yaml, OpenTelemetry’s API': ['lru-cache', 'uuid', 'yaml', '@opentelemetry/api'],
  'the service': [join(import.meta.dirname, '../dist/run-service.js')],
};
const IMPORT_EACH = `
  gc();
  for (const [name, modules] of Object.entries(JSON.parse(process.argv[1]))) {
    const [begun, bytes] = [performance.now(), process.memoryUsage().heapUsed];
    for (const module of modules) await import(module);
    const milliseconds = performance.now() - begun;
    gc();
    console.log(JSON.stringify([name, milliseconds, process.memoryUsage().heapUsed - bytes]));
  }`;

/** The time and the heap that the modules take which no earlier ones have imported. */
function measureImports(): Table {
  const options = SERVICE.filter((option) => option.startsWith('--'));
  const program = [...options, '--input-type=module', '--eval', IMPORT_EACH, JSON.stringify(MODULES)];
  const starts = Array.from({ length: START_COUNT }, () => {
    const lines = execFileSync(process.execPath, program, { encoding: 'utf8' }).trim().split('\n');
    return lines.map((line): [string, number, number] => JSON.parse(line));
  });
  const rows = Object.keys(MODULES).map((name, index) => {
    const medianOf = (figure: 1 | 2) => median(starts.map((start) => start[index]?.[figure] ?? Number.NaN));
    return [name, { ms: Math.round(medianOf(1)), 'MB of heap': rounded(medianOf(2) / 2 ** 20) }];
  });
  return Object.fromEntries(rows);
}

await benchmark('npm run bench:parts', '64M', async () => [
  await measureCalls(WAYS, { rounds: 9, calls: 500 }),
  measureImports(),
]);
