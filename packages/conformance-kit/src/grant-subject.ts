import { isDeepStrictEqual } from 'node:util';
import { GrantDecorator, type GrantMetadata, routesOf, schemaOf } from '@customer-authorization/service/testing-host';
import type { Type } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { controllersOf, grantsOf } from './extension-classes.js';
import type { GrantKit } from './kit.js';
import type { Traffic } from './recorded-traffic.js';
import type { SentRequest } from './request.js';
import { about, type Rule } from './rule.js';
import { assertDeclared, type Opened, open, Subject } from './subject.js';
import { TOKEN } from './test-environment.js';

export type GrantRule = Rule<GrantSubject>;

/** A valid request, with what happened while the test created it. */
export interface Proof extends Traffic {
  /** Whether a route of the extension took part. */
  isOfRoute: boolean;
}

/** A grant in the real service. */
export class GrantSubject extends Subject<GrantKit> {
  private constructor(
    readonly declared: GrantMetadata,
    kit: GrantKit,
    opened: Opened,
  ) {
    super(`the grant ${declared.name}`, kit, declared.body, opened);
  }

  /** @throws Error if the service does not start with the grant */
  static async open(grant: Type, kit: GrantKit): Promise<GrantSubject> {
    const declared = grantMetadataOf(grant);
    // a grant of the service itself belongs to no extension
    const opened = await open(kit, [...new Set([...grantsOf(kit), declared])]);
    return new GrantSubject(declared, kit, opened);
  }

  async create(environment = this.environment): Promise<SentRequest> {
    const own = await about('`valid`', async () => this.kit.valid(environment));
    return this.requestOf(own, environment);
  }

  /** As `create`, with what happened meanwhile. */
  async proof(environment = this.environment): Promise<Proof> {
    const traffic = await this.observed(environment);
    const own = controllersOf(this.kit);
    const routes = routesOf(this.service.application.get(DiscoveryService, { strict: false }));
    const isOfRoute = traffic.requests.some((each) =>
      routes.some(({ controller, method, path }) => {
        const [sentMethod, sentPath = ''] = each.split(' ');
        const pattern = new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`);
        return own.has(controller) && sentMethod === method.toUpperCase() && pattern.test(sentPath);
      }),
    );
    return { ...traffic, isOfRoute };
  }

  /** A request with the grant's own parameters. */
  async requestOf(own: object, environment = this.environment): Promise<SentRequest> {
    const { agentScope, name, body } = this.declared;
    const organization = schemaOf(body).required?.includes('organization_id') && {
      organization_id: environment.organizationId,
    };
    const bearer = agentScope && { authorization: `Bearer ${await environment.agentToken(agentScope)}` };
    return {
      ...{ method: 'POST', route: TOKEN, path: TOKEN },
      headers: { ...bearer, ...(await this.kit.caller?.(environment)) },
      body: { grant_type: name, client_id: environment.clientId, ...organization, ...own },
    };
  }

  /** Sends a request. @throws Error with the solution if it gets a token */
  async expectNoToken(sent: SentRequest, what: string, solution: string): Promise<void> {
    const response = await about(what, () => this.send(sent));
    if (response.status === 200) throw new Error(`${what}: gets a token; ${solution}`);
  }

  override async prepare(): Promise<void> {
    assertDeclared(await this.create(), this.declared.body);
    await super.prepare();
    const [one, other] = [await this.create(), await this.create()];
    if ((this.declared.uses ?? 1) === 1 && isDeepStrictEqual(one.body, other.body))
      throw new Error('`valid` returns the same proof twice; create a proof in each call');
  }
}

/** @throws Error if the class is not a grant */
export function grantMetadataOf(grant: Type): GrantMetadata {
  const declared = Reflect.getMetadata(GrantDecorator.KEY, grant) as GrantMetadata | undefined;
  if (!declared) throw new Error(`${grant.name}: no grant; decorate the class with @GrantType`);
  return declared;
}
