import { type FuzzRequest, headerOf } from './fuzz-request.js';
import { type Reply, replyCookies } from './reply.js';

interface Owner {
  /** The secret of the browser. `undefined` for customers that agents have created. */
  secret: string | undefined;
  identityScope: string;
}

/** Checks that no caller gets a customer of another browser, organization or group. */
export class Ownership {
  private readonly owners = new Map<string, Owner>();

  /** The violation in the identity of a response, or `undefined`. */
  violationOf(request: FuzzRequest, path: string, reply: Reply): string | undefined {
    if (reply.status !== 200 || !reply.text.includes('"entity_id"')) return undefined;
    const { entity_id: id, organization_id: organization } = JSON.parse(reply.text);
    if (organization === undefined) return undefined;
    const group = /^\/v2\/customer\/[^/]+\/([^/]+)\/token\/?$/.exec(path)?.[1];
    const cookies = cookiesOf(reply);
    if (!cookies) return this.violationOfOrganization(id, organization);
    if (cookies.id !== id) return `the cookie names another customer, ${cookies.id}`;
    const identityScope = group === undefined ? organization : `${organization} ${decodeURIComponent(group)}`;
    const owner = this.owners.get(id);
    this.owners.set(id, owner ?? { secret: cookies.secret, identityScope });
    if (!owner) return undefined;
    if (owner.secret !== cookies.secret) return `a customer of another browser, ${id}`;
    if (!headerOf(request, 'cookie')?.includes(cookies.secret))
      return `a customer without its secret in the request, ${id}`;
    return owner.identityScope === identityScope || !identityScope.includes(' ')
      ? this.violationOfOrganization(id, organization)
      : `a customer of another group, ${id}`;
  }

  private violationOfOrganization(id: string, organization: string): string | undefined {
    const owner = this.owners.get(id);
    if (!owner) this.owners.set(id, { secret: undefined, identityScope: organization });
    if (!owner || owner.identityScope.startsWith(organization)) return undefined;
    return `a customer of another organization, ${id}`;
  }
}

function cookiesOf(reply: Reply): { id: string; secret: string } | undefined {
  const values = replyCookies(reply).map((line) => /^__svc_(cid|cst)=([^;]*)/.exec(line));
  const id = values.find((found) => found?.[1] === 'cid')?.[2];
  const secret = values.find((found) => found?.[1] === 'cst')?.[2];
  return id !== undefined && secret !== undefined ? { id, secret } : undefined;
}
