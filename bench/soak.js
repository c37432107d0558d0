// @ts-check
/**
 * `npm run bench:soak [-- --save]`: two processes of the built service, a private durable MariaDB and a mixed load at a
 * fixed rate for SOAK_MINUTES (30), with two roll-outs, a key rotation, changes of the registry, a restart and a crash
 * of the database. Counts every response without 2xx by its cause, checks the responses, and samples memory and event
 * loop of each process. Exits with 1 if a response is wrong or has no explanation. SOAK_RATE is the number of
 * operations per second (150). `--save` writes the figures to docs/performance.md and draws docs/soak.svg.
 */
import { SERVICE } from './server.js';
import { withSetup } from './setup.js';
import { Agents } from './soak/agents.js';
import { Caller } from './soak/caller.js';
import { Customers } from './soak/customers.js';
import { runEvents } from './soak/events.js';
import { mixOf, runLoad } from './soak/load.js';
import { Pods } from './soak/pods.js';
import { Records } from './soak/records.js';
import { report } from './soak/report.js';
import { soakEnvironment } from './soak/site.js';

const DURATION_MINUTES = Number(process.env.SOAK_MINUTES ?? 30);
const OPERATIONS_PER_SECOND_COUNT = Number(process.env.SOAK_RATE ?? 150);
const PROCESS_COUNT = 2;

await withSetup('256M', async (setup) => {
  setup.connection.destroy(); // it would not survive the crash
  const more = soakEnvironment(setup.environment.SIGNING_KEYS_FILE);
  let begun = performance.now();
  const now = () => performance.now() - begun;
  const pods = new Pods(() => setup.start(SERVICE, more), now);
  while (pods.all.length < PROCESS_COUNT) await pods.add();
  begun = performance.now();
  const records = new Records();
  const caller = new Caller(pods, records, now);
  const customers = new Customers(caller);
  const agents = new Agents(caller, customers);
  await agents.prepare();

  const end = new AbortController();
  const sampling = pods.sample(end.signal);
  const load = runLoad(mixOf(caller, customers, agents), OPERATIONS_PER_SECOND_COUNT, end.signal, (error) =>
    records.reportWrong('load', `${error}`),
  );
  const events = await runEvents({ pods, caller, customers, setup }, DURATION_MINUTES * 60_000).finally(() =>
    end.abort(),
  );
  await Promise.all([load, sampling]);
  const durationMs = now();

  const causes = await records.causes(pods.all.map(({ server }) => server.log));
  const isGood = report({ durationMs, pods: pods.all, records, events, causes, caller });
  if (!isGood) process.exitCode = 1;
});
