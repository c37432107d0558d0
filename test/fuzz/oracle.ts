import { type OpenApiResponses, type ReceivedResponse } from '../support/openapi-responses.js';
import { ACME_AGENT, BACKEND_SECRET, RIVAL_AGENT } from '../support/test-registry.js';
import type { TestResponse } from '../support/test-service.js';
import { violationOfErrorResponse } from './error-response.js';
import { type FuzzRequest, headerOf, type Port } from './fuzz-request.js';
import { FUZZ_MARKER, INJECTED_HEADER, MARKUP } from './hostile-values.js';
import type { Operation } from './operations.js';
import { SMUGGLED_ID } from './raw-shapes.js';
import { ADMIN_TOKEN, cookiesOf, RESOURCE_SERVER } from './world.js';

/** The hint of a response to bytes that are not an HTTP request. Any route may return it. */
const BROKEN = '"error_hint":"HTTP: malformed or incomplete request"';
/** Routes whose responses are public and may be cached. */
const STORABLE = /^\/(\.well-known\/|page\.css)/;

export class Oracle {
  private readonly ownership = new Ownership();

  constructor(
    private readonly documented: OpenApiResponses,
    private readonly operations: Operation[],
  ) {}

  /** The violation in the response to a request, or `undefined`. */
  violationOf(request: FuzzRequest, response: TestResponse): string | undefined {
    const { port, target } = request;
    const method = request.method.trim();
    const path = pathOf(target);
    if (response.text.includes(BROKEN)) return this.violationOfAny(response) ?? violationOfError(response, request);
    const received = receivedResponse(port, method, path, response);
    return (
      this.violationOfAny(response) ??
      (response.status >= 400
        ? violationOfError(response, request)
        : this.violationOfSuccess(request, path, response)) ??
      this.violationOfRoute(received) ??
      (['HEAD', 'OPTIONS'].includes(method) ? undefined : this.documented.violationOf(received)) ??
      this.ownership.violationOf(request, path, response)
    );
  }

  /** The violation in a response to bytes that are not a known request, or `undefined`. */
  violationOfRaw(response: TestResponse): string | undefined {
    return this.violationOfAny(response) ?? (response.status >= 400 ? violationOfError(response) : undefined);
  }

  private violationOfAny(response: TestResponse): string | undefined {
    if (response.status >= 500) return `${response.status}`;
    const id = response.headers.get('x-request-id');
    if (!id) return 'no X-Request-Id';
    if (id === SMUGGLED_ID) return 'a smuggled request got a response';
    if (response.headers.get('x-content-type-options') !== 'nosniff') return 'no nosniff';
    if (response.headers.has(INJECTED_HEADER)) return 'a header of the caller is in the response';
    const isPage = response.headers.get('content-type')?.startsWith('text/html');
    return isPage && response.text.includes(MARKUP) ? 'markup of the caller is on the page' : undefined;
  }

  private violationOfSuccess(request: FuzzRequest, path: string, response: TestResponse): string | undefined {
    const { port, forgedBearer, forgedToken } = request;
    const method = request.method.trim();
    if (!STORABLE.test(path) && response.headers.get('cache-control') !== 'no-store')
      return 'a response that may be cached';
    const allowedOrigin = response.headers.get('access-control-allow-origin');
    if (allowedOrigin !== null && allowedOrigin !== '*' && allowedOrigin !== headerOf(request, 'origin')?.trim())
      return `CORS for ${allowedOrigin}`;
    if (method === 'OPTIONS') return undefined;
    const operation = this.operations.find(
      (each) => each.port === port && each.method === method && each.path === path.replace(/([^/])\/$/, '$1'),
    );
    const wantsBearer =
      operation?.security.length && operation.security.every((each) => ['bearer', 'operator'].includes(each));
    if (forgedBearer && wantsBearer) return 'a forged bearer was accepted';
    const isAlive = operation?.path === '/oauth2/introspect' && response.body.active;
    return forgedToken && isAlive ? 'a forged token is active' : undefined;
  }

  /** Checks that the routes of the service and of the OpenAPI document are the same. */
  private violationOfRoute(response: ReceivedResponse): string | undefined {
    const { method, status } = response;
    if (['HEAD', 'OPTIONS'].includes(method)) return undefined;
    const methods = this.documented.methodsAt(response);
    if (!methods) return [404, 400].includes(status) ? undefined : `${status} for an unknown route`;
    if (Object.hasOwn(methods, method.toLowerCase()))
      return status === 405 ? '405 for a method of the document' : undefined;
    return [405, 400].includes(status) ? undefined : `${status} for another method`;
  }
}

function receivedResponse(port: Port, method: string, path: string, response: TestResponse): ReceivedResponse {
  const type = response.headers.get('content-type')?.split(';')[0] ?? '';
  return { isManagement: port === 'management', method, path, status: response.status, type, text: response.text };
}

/** The path that the service derives from a request target. A target of another scheme has none. */
function pathOf(target: string): string {
  if (target.includes('#')) return '';
  // not the path of `URL`, which has no dot segments
  const [absolute, afterAuthority] = /^https?:\/\/[^/?]+([^?]*)/i.exec(target) ?? [];
  if (!absolute && !target.startsWith('/')) return '';
  if (absolute && !URL.canParse(target)) return '';
  const path = afterAuthority ?? target.split('?', 1)[0] ?? '';
  // a trailing slash does not change a path (protocol §2.3), and the kit knows the path `/` without one
  return ['', '//'].includes(path) ? '/' : path;
}

const SECRETS = [BACKEND_SECRET, ADMIN_TOKEN, RESOURCE_SERVER.secret, ACME_AGENT.password, RIVAL_AGENT.password];

/** The lines of a hint that must name a key of the request. */
const NAMING_HINT = /^.*: (unknown (field|parameter)$|not a grant of this service)/gm;

/** The violation of protocol §2.11 in an error response. The OpenAPI checks validate its schema. */
function violationOfError(response: TestResponse, request?: FuzzRequest): string | undefined {
  const { text, body } = response;
  const header = (name: string) => response.headers.get(name) ?? undefined;
  const violation = violationOfErrorResponse({ ...response, header });
  if (violation !== undefined) return violation;
  const leaked = secretsOf(request).find((secret) => text.includes(secret));
  if (leaked !== undefined) return `an error response that contains a secret: ${leaked}`;
  if (!body) return undefined;
  const hint = String(body.error_hint).replaceAll(NAMING_HINT, '');
  if (`${hint}${body.error_description}`.includes(FUZZ_MARKER)) return 'a value of the request in the error';
  return undefined;
}

function secretsOf(request: FuzzRequest | undefined): string[] {
  if (!request) return SECRETS;
  const bearer = headerOf(request, 'authorization')?.split(' ')[1] ?? '';
  const [, cookie = ''] = /__svc_cst=\w{32}(\w{64})/.exec(headerOf(request, 'cookie') ?? '') ?? [];
  return [...SECRETS, bearer, cookie].filter((secret) => secret.length > 20);
}

/** The id and the secret of the browser, with which the cookie begins. The rest belongs to the customer's id. */
const browserIn = (secret: string): string => secret.slice(0, 96);

interface Owner {
  /** The browser. `undefined` for customers that agents have created. */
  browser: string | undefined;
  identityScope: string;
}

/** Checks that no caller gets a customer of another browser, organization or group. */
class Ownership {
  private readonly owners = new Map<string, Owner>();

  /** The violation in the identity of a response, or `undefined`. */
  violationOf(request: FuzzRequest, path: string, response: TestResponse): string | undefined {
    const { entity_id: id, organization_id: organization } = response.body ?? {};
    if (response.status !== 200 || id === undefined || organization === undefined) return undefined;
    const group = /^\/v2\/customer\/[^/]+\/([^/]+)\/token\/?$/.exec(path)?.[1];
    const cookies = cookiesOf(response);
    if (!cookies) return this.violationOfOrganization(id, organization);
    if (cookies.id !== id) return `the cookie names another customer, ${cookies.id}`;
    const browser = browserIn(cookies.secret);
    const identityScope = group === undefined ? organization : `${organization} ${decodeURIComponent(group)}`;
    const owner = this.owners.get(id);
    this.owners.set(id, owner ?? { browser, identityScope });
    if (!owner) return undefined;
    if (owner.browser !== browser) return `a customer of another browser, ${id}`;
    if (!headerOf(request, 'cookie')?.includes(browser)) return `a customer without its secret in the request, ${id}`;
    return owner.identityScope === identityScope || !identityScope.includes(' ')
      ? this.violationOfOrganization(id, organization)
      : `a customer of another group, ${id}`;
  }

  private violationOfOrganization(id: string, organization: string): string | undefined {
    const owner = this.owners.get(id);
    if (!owner) this.owners.set(id, { browser: undefined, identityScope: organization });
    if (!owner || owner.identityScope.startsWith(organization)) return undefined;
    return `a customer of another organization, ${id}`;
  }
}
