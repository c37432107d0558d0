import { environmentOf, type ServiceProcess, startServiceProcess } from './processes.js';
import type { TestService } from './service.js';

/** By the same AUTH_URL one takes the tokens of another; `production` keeps a first run's demo out of the database. */
const SHARED = { AUTH_URL: 'https://auth.example', NODE_ENV: 'production' };

/** The built service in a process of its own, beside a test's service: on its database, with its keys and the real clock. */
export function startPod({ database }: Pick<TestService, 'database'>, more = {}): Promise<ServiceProcess> {
  return startServiceProcess({ ...environmentOf(database), ...SHARED, ...more });
}
