import { type FuzzRequest, headerOf } from './fuzz-request.js';
import { type Reply, replyCookies } from './reply.js';

interface Owner {
  /** The secret of the browser; `undefined` for customers that agents have made. */
  secret: string | undefined;
  place: string;
}

/** Whose every customer is. Nobody may ever get a customer of somebody else's, or of another organization or group. */
export class Ownership {
  private readonly owners = new Map<string, Owner>();

  /** What is wrong about the identity in an answer. */
  violationOf(request: FuzzRequest, path: string, reply: Reply): string | undefined {
    if (reply.status !== 200 || !reply.text.includes('"entity_id"')) return undefined;
    const { entity_id: id, organization_id: organization } = JSON.parse(reply.text);
    if (organization === undefined) return undefined;
    const group = /^\/v2\/customer\/[^/]+\/([^/]+)\/token\/?$/.exec(path)?.[1];
    const cookies = cookiesOf(reply);
    if (!cookies) return this.violationOfOrganization(id, organization);
    if (cookies.id !== id) return `the cookie names another customer, ${cookies.id}`;
    const place = group === undefined ? organization : `${organization} ${decodeURIComponent(group)}`;
    const owner = this.owners.get(id);
    this.owners.set(id, owner ?? { secret: cookies.secret, place });
    if (!owner) return undefined;
    if (owner.secret !== cookies.secret) return `a customer of another browser, ${id}`;
    if (!headerOf(request, 'cookie')?.includes(cookies.secret)) return `a customer whose secret was not shown, ${id}`;
    return owner.place === place || !place.includes(' ')
      ? this.violationOfOrganization(id, organization)
      : `a customer of another group, ${id}`;
  }

  private violationOfOrganization(id: string, organization: string): string | undefined {
    const owner = this.owners.get(id);
    if (!owner) this.owners.set(id, { secret: undefined, place: organization });
    if (!owner || owner.place.startsWith(organization)) return undefined;
    return `a customer of another organization, ${id}`;
  }
}

function cookiesOf(reply: Reply): { id: string; secret: string } | undefined {
  const values = replyCookies(reply).map((line) => /^__svc_(cid|cst)=([^;]*)/.exec(line));
  const id = values.find((found) => found?.[1] === 'cid')?.[2];
  const secret = values.find((found) => found?.[1] === 'cst')?.[2];
  return id !== undefined && secret !== undefined ? { id, secret } : undefined;
}
