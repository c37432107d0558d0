import { randomInt } from 'node:crypto';
import { fuzz } from './fuzz.js';

const {
  FUZZ_REQUESTS = '200000',
  FUZZ_SEED = String(randomInt(2 ** 31)),
  FUZZ_FIRST = '0',
  FUZZ_PATIENCE = '3000',
} = process.env;
const print = (line: string) => void process.stdout.write(`${line}\n`);

print(`FUZZ_SEED=${FUZZ_SEED} FUZZ_REQUESTS=${FUZZ_REQUESTS}`);
try {
  const requests = Number(FUZZ_REQUESTS);
  const options = {
    requests,
    seed: Number(FUZZ_SEED),
    first: Number(FUZZ_FIRST),
    patience: Number(FUZZ_PATIENCE),
  };
  print(JSON.stringify(await fuzz({ ...options, progress: print }), undefined, 2));
} catch (error) {
  print(`FAILED  FUZZ_SEED=${FUZZ_SEED}\n${(error as Error).message}`);
  process.exitCode = 1;
}
