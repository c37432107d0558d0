import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request } from 'express';
import { BearerGuard } from '../bearer/bearer.guard.js';
import { readBody } from '../oauth/body-reader.js';
import { isForm, parseForm } from '../oauth/form.js';
import { parseJsonObject } from '../oauth/json-object.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { GrantIndex, type IndexedGrant } from './grant-index.js';

declare module 'express-serve-static-core' {
  interface Request {
    /** What the request asks for; set by the grant guard. */
    asked?: { grant: IndexedGrant; sent: Record<string, unknown> };
  }
}

/** Fixes the grant of an address whose requests name none. */
export const AsksFor = Reflector.createDecorator<string>();

/** Finds the grant that a request asks for and, where the grant wants an agent, lets only one with its scope in. */
@Injectable()
export class GrantGuard implements CanActivate {
  constructor(
    private readonly grants: GrantIndex,
    private readonly bearer: BearerGuard,
    private readonly reflector: Reflector,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<Request>();
    const body = this.parametersOf(await readBody(request), request.headers['content-type']);
    const fixed = this.reflector.get(AsksFor, context.getHandler());
    const sent = fixed === undefined ? body : { ...body, grant_type: fixed };
    const grant = this.grants.named(sent.grant_type);
    requestContext.set({ grant: grant.name });
    if (request.params.group_id !== undefined && !grant.groups)
      throw OAuthError.invalidRequest('grant_type: not at the address of a group');
    request.asked = { grant, sent };
    if (grant.agentScope !== undefined) await this.admitAgent(context, request, grant.agentScope);
    return true;
  }

  /** A form is read for a grant that declares to read forms; to any other it is no message. */
  private parametersOf(text: string, contentType: string | undefined): Record<string, unknown> {
    if (!isForm(text, contentType)) return parseJsonObject(text);
    if (!this.grants.readsForms(new URLSearchParams(text).get('grant_type'))) throw OAuthError.invalidMessage();
    return parseForm(text);
  }

  private async admitAgent(context: ExecutionContext, request: Request, scope: string): Promise<void> {
    await this.bearer.canActivate(context);
    if (request.principal?.kind !== 'agent') throw OAuthError.invalidToken('not an agent token');
    if (!request.principal.scopes.includes(scope)) throw OAuthError.insufficientScope(scope);
  }
}
