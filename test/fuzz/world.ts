import type { Random } from '../../packages/conformance-kit/src/fuzz/random.js';

/** A limited number of tokens, codes or ids from the service, which later requests may use. */
class Pool<Item> {
  private readonly items: Item[] = [];

  constructor(private readonly size = 60) {}

  add(item: Item): void {
    if (this.items.length < this.size) this.items.push(item);
    else this.items[Math.floor(Math.random() * this.size)] = item;
  }

  pick(random: Random): Item | undefined {
    const item = this.items[random.below(Math.max(this.items.length, 1))];
    return item;
  }

  remove(item: Item): void {
    const at = this.items.indexOf(item);
    if (at >= 0) this.items.splice(at, 1);
  }
}

export interface CookiePair {
  id: string;
  secret: string;
}

/** A code with the parameters that its redemption needs. */
export interface Code {
  code: string;
  client_id: string;
  code_verifier?: string;
}

/** A browser at the authorization page. */
export interface Browser {
  cookies: Map<string, string>;
  csrf?: string;
}

/** The tokens, codes, cookies and ids that the service has returned so far. */
export class World {
  readonly pairs = new Pool<CookiePair>();
  readonly customerTokens = new Pool<string>();
  /** Agent access tokens that requests may revoke. */
  readonly agentTokens = new Pool<string>();
  readonly transferCodes = new Pool<Code>();
  readonly authorizationCodes = new Pool<Code>();
  readonly refreshTokens = new Pool<string>();
  readonly browsers = new Pool<Browser>(30);
  /** Keys of registry entries that the admin API has created, by list. */
  readonly createdKeys = new Map<string, Pool<string>>();
  private readonly customers = new Map<string, Pool<string>>();

  /** @param agents agent access tokens by organization that no request revokes */
  constructor(readonly agents: Record<string, string>) {}

  customersOf(organization: string): Pool<string> {
    return poolAt(this.customers, organization);
  }

  createdKeysOf(list: string): Pool<string> {
    return poolAt(this.createdKeys, list);
  }
}

function poolAt(pools: Map<string, Pool<string>>, key: string): Pool<string> {
  const pool = pools.get(key) ?? new Pool<string>();
  pools.set(key, pool);
  return pool;
}
