import { createTokenVerifier } from '../../src/index.js';

/** An API that only starts: the options of the verifier and the limit of `ready` in milliseconds are parameters. */
const [, , options = '{}', timeoutMs] = process.argv;
const verifier = createTokenVerifier(JSON.parse(options));
await verifier.ready({ signal: AbortSignal.timeout(Number(timeoutMs)) });
verifier.close();
