import fc from 'fast-check';
import { startTestService, type TestService } from '../../packages/conformance-kit/src/test-service.js';
import { JWT_BEARER, SignInSystem } from '../support/assertion-issuer.js';
import { WITH_REFRESH } from '../support/customer-refresh.js';
import { FEED_SERVERS } from '../support/revocation-feed.js';
import {
  ACME,
  ACME_BACKEND,
  ACME_NATIVE,
  ACME_ORIGIN,
  ACME_SITE,
  changed,
  PUBLIC_ORIGIN,
  PUBLIC_SITE,
  RIVAL,
  RIVAL_ORIGIN,
  RIVAL_SITE,
  testRegistry,
} from '../support/test-registry.js';
import { ADMIN_TOKENS } from '../support/use-service.js';
import { createAgent } from './agents.js';
import { checkSessions, checkTokens, Follower } from './checks.js';
import { DAY_MS, REFRESH_SECONDS } from './model.js';
import type { Client } from './things.js';
import { type Statistics, Walk, WalkError } from './walk.js';
import { run, type Step, tryEverything, walks } from './walks.js';

/** The walks of one seed each have up to so many commands. */
const MAX_COMMANDS = 120;
/** How long a failure is made shorter. */
const MAX_SHRINKING_MS = 300_000;
const WALKS_PER_SERVICE = 20;
/** The checks that cost more are made after so many commands, and at the end. */
const STEPS_PER_FULL_CHECK = 20;
const STEPS_PER_FEED_CHECK = 60;

/** The settings of the first organizations of the registry. */
const SETTINGS = [
  { name: 'Acme', id: ACME, idleDays: 3, signInDays: 2 },
  { name: 'Rival', id: RIVAL, idleDays: 60, signInDays: 30 },
];

export interface RunOptions {
  /** The number of commands, at least. */
  steps: number;
  /** Of the first walk. Each further one has the next number. */
  seed: number;
  progress?: (line: string) => void;
}

export interface Figures {
  statistics: Statistics;
  walkCount: number;
  stepCount: number;
}

/**
 * Runs walks until enough commands were sent. @throws Error that names the seed, the shortest failing walk and the
 * reason
 */
export async function runWalks({ steps, seed, progress }: RunOptions): Promise<Figures> {
  const users = await SignInSystem.start();
  const statistics: Statistics = new Map();
  const figures = { statistics, walkCount: 0, stepCount: 0 };
  try {
    while (figures.stepCount < steps) {
      await runOnService(users, figures, { steps, seed });
      progress?.(`${figures.stepCount} steps in ${figures.walkCount} walks`);
    }
  } finally {
    await users.issuer.stop();
  }
  return figures;
}

/**
 * A service for some walks, because its start takes as long as 30 commands. Each walk has customers and agents of its
 * own.
 */
async function runOnService(users: SignInSystem, figures: Figures, { steps, seed }: RunOptions): Promise<void> {
  const registry = { ...registryOf(users), resource_servers: FEED_SERVERS };
  const environment = { ADMIN_TOKENS, REFRESH_TOKEN_TTL: String(REFRESH_SECONDS) };
  const service = await startTestService({ registry, environment });
  const purges = { lastDay: 0 };
  try {
    for (let walk = 0; walk < WALKS_PER_SERVICE && figures.stepCount < steps; walk++) {
      const seedOfWalk = seed + figures.walkCount++;
      let failedAt = Number.POSITIVE_INFINITY;
      const property = fc.asyncProperty(walks(MAX_COMMANDS), async (commands) => {
        if (performance.now() - failedAt > MAX_SHRINKING_MS) return; // the shortest failure so far is reported
        const newWalk = () => walkOn(service, users, figures.statistics, purges);
        try {
          figures.stepCount += await service.clock.whileStopped(() => runWalk(service, newWalk, commands));
        } catch (error) {
          failedAt = Math.min(failedAt, performance.now());
          throw error;
        }
      });
      await fc.assert(property, { seed: seedOfWalk, numRuns: 1, unbiased: true }).catch((error) => {
        const { message } = ((error as Error).cause ?? error) as Error;
        throw new Error(`MODEL_SEED=${seedOfWalk} MODEL_STEPS=1\n${message}`, { cause: error });
      });
    }
  } finally {
    await service.stop();
  }
}

/** Begins at noon, so that the days of a walk do not depend on the time of the run. @returns the number of commands */
async function runWalk(service: TestService, newWalk: () => Promise<Walk>, steps: Step[]): Promise<number> {
  const noonMs = (Math.floor(service.clock.now() / DAY_MS) + 1.5) * DAY_MS;
  service.clock.advance({ milliseconds: noonMs - service.clock.now() });
  const walk = await newWalk();
  const follower = new Follower(service);
  let stepCount = 0;
  const check = async () => {
    stepCount++;
    const isThorough = stepCount % STEPS_PER_FULL_CHECK === 0;
    await checkTokens(walk, { all: isThorough });
    if (isThorough) await checkSessions(walk);
    if (stepCount % STEPS_PER_FEED_CHECK === 0) await follower.check(walk);
  };
  try {
    for (const step of steps) {
      await run(walk, step);
      await check();
    }
    await checkSessions(walk);
    await follower.check(walk);
    for (const browser of walk.model.browsers)
      walk.count(`a browser with ${walk.model.leading(browser).length} customers`);
    await tryEverything(walk);
    await checkTokens(walk, { all: true });
  } catch (error) {
    throw error instanceof WalkError ? error : walk.failure((error as Error).stack ?? '');
  } finally {
    follower.close();
  }
  return stepCount;
}

function registryOf(users: SignInSystem): ReturnType<typeof testRegistry> {
  const registry = testRegistry();
  registry.organizations = registry.organizations.map((organization, index) => {
    const settings = SETTINGS[index];
    if (!settings) return organization;
    // the issuer of both is the same, so that an audience names the organization
    const audience = [(organization as { id: string }).id];
    const grants = { [JWT_BEARER]: users.settings({ sign_in_days: settings.signInDays, audience }) };
    return { ...organization, idle_days: settings.idleDays, grants };
  });
  const remember = {
    identity_token: { remember: ['browser', 'refresh_token'] },
    [JWT_BEARER]: { remember: ['browser'] },
  };
  const grants = { grants: remember, grant_types: [...WITH_REFRESH, JWT_BEARER] };
  const scopes = ['customers:own', 'customers:manage'];
  const clients = changed(registry.clients, [ACME_SITE, RIVAL_SITE, PUBLIC_SITE], { ...grants, scopes });
  registry.clients = changed(clients, [ACME_BACKEND], { scopes });
  return registry;
}

async function walkOn(
  service: TestService,
  users: SignInSystem,
  statistics: Statistics,
  purges: { lastDay: number },
): Promise<Walk> {
  const organizations = SETTINGS.map((settings) => ({ ...settings })) as Walk['organizations'];
  const [acme, rival] = organizations;
  const clients: Client[] = [
    { id: PUBLIC_SITE, origin: PUBLIC_ORIGIN, organizations },
    { id: ACME_SITE, origin: ACME_ORIGIN, organizations: [acme] },
    { id: RIVAL_SITE, origin: RIVAL_ORIGIN, organizations: [rival] },
  ];
  const agentClients = [ACME_BACKEND, ACME_NATIVE].map((id) => ({ id, origin: '', organizations: [] }));
  const walk = new Walk(service, organizations, clients, agentClients, users, statistics, purges);
  for (const organization of organizations) await createAgent(walk, organization);
  return walk;
}
