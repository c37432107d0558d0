import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomSecret } from '@customer-authorization/service/grant';
import { stringify } from 'yaml';
import { demoSignInSettings } from './demo-sign-in.js';

/** The ids of the examples in the service's OpenAPI document. */
export const DEMO = {
  organizationId: '390e44e6-f1e6-4368-86dd-b74514508c2e',
  /** The web application. */
  clientId: '9cbf3a968289727cb3cdfe83ab1d9836',
  /** The backend, which has a secret. */
  serverClientId: '2d1f4b7c90a84e35b6c1d8f7a2e0935c',
  nativeClientId: '5e0c7d1a3b8f4296a1c4e7f09d2b6835',
  agentEmail: 'agent@acme.example',
};

/** The entries of the registry file that the try-it page reads. */
export interface DemoEntries {
  clients: { client_id: string; organization_id: string; redirect_uris: string[]; client_secret?: string }[];
  agents: { email: string; password: string }[];
}

/** The redirect URI of the demo clients: the try-it page that shows the token of an agent (protocol §11). */
export const signedInUrl = (authUrl: string): string => `${authUrl}/try/signed-in`;

/** Pages under development, on the site of the service and on another one. */
const PAGE_ORIGINS = ['http://localhost:8080', 'http://shop.localhost:8080'];
/**
 * The redirect URI of a backend under development. Nothing needs to listen there: the browser shows the code in the
 * URL.
 */
const BACKEND_CALLBACK = 'http://localhost:9000/callback';
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const BACKEND_AGENT_EMAIL = 'backend@acme.example';
/** The file with the id of the process that uses the demo registry. */
const PID_FILE = 'npm-start.pid';
const BACKEND_SCOPES = ['customers:own', 'customers:manage'];

/**
 * The path of a demo registry with an organization, its web, server and native application, a resource server, an agent
 * and the agent of the backend. The first start writes the file with random secrets (mode 0600). A later start at
 * another URL only replaces the URL of the service in the file.
 *
 * @throws Error if another running process uses the file at another URL
 */
export function demoRegistry(folder: string, authUrl: string): string {
  const path = join(folder, 'demo-registry.yaml');
  if (existsSync(path)) {
    moveTryItPage(path, authUrl, join(folder, PID_FILE));
    return path;
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const text = stringify(demoEntries(authUrl), { aliasDuplicateObjects: false });
  writeFileSync(path, text, { mode: 0o600, flag: 'wx' });
  return path;
}

/** Replaces the URL of the try-it page in a demo registry, after a start on another port. */
function moveTryItPage(path: string, authUrl: string, pidFile: string): void {
  const text = readFileSync(path, 'utf8');
  const [, earlierUrl] = /(https?:\/\/\S+)\/try\/signed-in/.exec(text) ?? [];
  if (earlierUrl === undefined || earlierUrl === authUrl) return;
  const pid = readPid(pidFile);
  if (isOtherProcess(pid))
    throw new Error(
      `Process ${pid} uses the demo registry ${path} at ${earlierUrl}: stop it, or set DATA_DIR to another folder. ` +
        `If this is no npm start, delete ${pidFile}.`,
    );
  const earlier = new RegExp(`${earlierUrl.replace(/\W/g, '\\$&')}(?![\\w.:-])`, 'g'); // not the start of another URL
  writeFileSync(path, text.replaceAll(earlier, authUrl));
}

/** Notes that this process uses the demo registry of a folder. */
export function claimDemoRegistry(folder: string): void {
  const pidFile = join(folder, PID_FILE);
  if (isOtherProcess(readPid(pidFile))) return; // a second start with the same URL, which cannot listen
  writeFileSync(pidFile, String(process.pid), { mode: 0o600 });
  process.once('exit', () => rmSync(pidFile, { force: true }));
}

function readPid(pidFile: string): number {
  return existsSync(pidFile) ? Number(readFileSync(pidFile, 'utf8')) : 0;
}

function isOtherProcess(pid: number): boolean {
  try {
    return pid > 0 && pid !== process.pid && process.kill(pid, 0); // sends no signal
  } catch {
    return false;
  }
}

/** An organization, a web and a server application, and an agent, with random secrets. */
export function demoEntries(authUrl: string) {
  const redirect_uris = [...new Set(['http://localhost:3000/', `${authUrl}/`, signedInUrl(authUrl)])];
  // a page of the site may move its customer into the app, and sends its own origin (protocol §4.10)
  const pageOrigins = new Set([...PAGE_ORIGINS, ...redirect_uris.map((uri) => new URL(uri).origin)]);
  const clientSecret = randomSecret('base64url');
  return {
    organizations: [
      {
        id: DEMO.organizationId,
        name: 'Acme',
        license: { chat_between_groups: false },
        public_clients: [],
        grants: { [JWT_BEARER]: demoSignInSettings(clientSecret) },
      },
    ],
    clients: [
      {
        client_id: DEMO.clientId,
        name: 'Acme site',
        client_type: 'web',
        organization_id: DEMO.organizationId,
        redirect_uris,
        redirect_uri_match: 'prefix',
        origins: PAGE_ORIGINS,
        scopes: ['customers:own'],
        grant_types: ['cookie', 'anonymous', 'agent_token', 'identity_token', 'refresh_token', JWT_BEARER],
        grants: {
          identity_token: { remember: ['browser', 'refresh_token'] },
          [JWT_BEARER]: { remember: ['browser'] },
        },
      },
      {
        client_id: DEMO.serverClientId,
        name: 'Acme backend',
        client_type: 'server',
        organization_id: DEMO.organizationId,
        client_secret: clientSecret,
        redirect_uris: [...redirect_uris, BACKEND_CALLBACK],
        scopes: BACKEND_SCOPES,
        agent: BACKEND_AGENT_EMAIL,
        grant_types: ['client_credentials', 'agent_token', 'identity_token'],
      },
      {
        client_id: DEMO.nativeClientId,
        name: 'Acme app',
        client_type: 'native',
        organization_id: DEMO.organizationId,
        redirect_uris: ['example.acme:/callback'],
        origins: [...pageOrigins],
        grant_types: ['cookie', 'anonymous', 'identity_token', 'refresh_token'],
        grants: { identity_token: { remember: ['refresh_token'] } },
      },
    ],
    resource_servers: [{ id: 'chat-api', secret: randomSecret('base64url'), audiences: ['customer-api'] }],
    agents: [
      demoAgent(DEMO.agentEmail, 'Agent One', ['customers:own']),
      demoAgent(BACKEND_AGENT_EMAIL, 'Agent of the Acme backend', BACKEND_SCOPES),
    ],
  };
}

function demoAgent(email: string, name: string, scopes: string[]) {
  const password = randomSecret('base64url').slice(0, 16);
  return { email, name, password, organization_id: DEMO.organizationId, scopes };
}
