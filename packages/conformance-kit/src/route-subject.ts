import { type Route, routesOf } from '@customer-authorization/service/testing-host';
import type { Type } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { RouteKit } from './kit.js';
import type { SentRequest } from './request.js';
import { about, type Rule } from './rule.js';
import { assertDeclared, type Opened, open, Subject } from './subject.js';
import type { KitEnvironment } from './test-environment.js';

export type RouteRule = Rule<RouteSubject>;

/** A route of the public port in the real service. */
export class RouteSubject extends Subject<RouteKit> {
  private constructor(
    readonly route: Route,
    kit: RouteKit,
    opened: Opened,
  ) {
    const body = route.parameters.body as Type<object> | undefined;
    super(`the route ${nameOf(route)}`, kit, body, opened);
  }

  /** @throws Error if the service does not start, or does not have the route */
  static async open(name: string, kit: RouteKit): Promise<RouteSubject> {
    const opened = await open(kit);
    const routes = routesOf(opened.service.application.get(DiscoveryService, { strict: false }));
    const route = routes.find((each) => each.listener === 'public' && nameOf(each) === name);
    if (route) return new RouteSubject(route, kit, opened);
    await opened.service.stop();
    const known = routes.filter(({ listener }) => listener === 'public').map(nameOf);
    throw new Error(`${name}: no controller of the public port has this route; it has ${known.join(', ')}`);
  }

  async create(environment = this.environment): Promise<SentRequest> {
    const {
      path = this.route.path,
      headers = {},
      body,
    } = await about('`valid`', async () => this.kit.valid(environment));
    const own = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    const all = 'authorization' in own ? own : { ...(await this.bearer(environment)), ...own };
    const method = this.route.method.toUpperCase();
    return { method, route: this.route.path, path, headers: all, ...(body && { body: { ...body } }) };
  }

  override async prepare(): Promise<void> {
    if (this.body) assertDeclared(await this.create(), this.body);
    await super.prepare();
  }

  /** The bearer token of a new caller; of another agent of the organization with `isColleague`. */
  async bearer(environment: KitEnvironment = this.environment, isColleague = false): Promise<Record<string, string>> {
    const { callers, agentScope = 'customers:own' } = this.kit;
    if (callers.length === 0) return {};
    if (callers.includes('customer'))
      return { authorization: `Bearer ${(await environment.newCustomer()).accessToken}` };
    const token = isColleague ? environment.colleagueToken(agentScope) : environment.agentToken(agentScope);
    return { authorization: `Bearer ${await token}` };
  }
}

const nameOf = ({ method, path }: Route): string => `${method.toUpperCase()} ${path}`;
