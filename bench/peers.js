// @ts-check
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { post } from './requests.js';

const FOLDER = join(import.meta.dirname, 'peers');

/** Other servers, each with the route that is most similar to a route of the service. */
const PEERS = [
  {
    name: 'node-oidc-provider: client_credentials, in memory',
    program: ['bench/peers/oidc-provider.js'],
    requests: [
      post(
        '/token',
        'grant_type=client_credentials&client_id=site&client_secret=secret-of-the-site&scope=chat',
        'Content-Type: application/x-www-form-urlencoded',
      ),
    ],
  },
  {
    name: 'better-auth: anonymous sign-in, same MariaDB',
    program: ['bench/peers/better-auth.js'],
    requests: [post('/api/auth/sign-in/anonymous', '{}', 'Content-Type: application/json\r\nOrigin: http://localhost')],
  },
];

/** The peers, if their packages are installed or can be. The packages are not dependencies of the service. */
export function peers() {
  if (existsSync(join(FOLDER, 'node_modules'))) return PEERS;
  const install = ['ci', '--omit=peer', '--ignore-scripts', '--no-audit', '--no-fund'];
  const { status } = spawnSync('npm', install, { cwd: FOLDER, stdio: ['ignore', 'ignore', 'inherit'] });
  if (status === 0) return PEERS;
  console.error('THE PEERS ARE NOT MEASURED: npm could not install bench/peers');
  return [];
}
