import { Reflector } from '@nestjs/core';

/**
 * The kinds of token routes: `token` for every grant, `group` for the same with a group in the path, and `fixed-grant`
 * for a route of one grant, whose requests have no `grant_type`.
 */
export type TokenRouteKind = 'token' | 'group' | 'fixed-grant';

/** Marks a route that issues customer tokens by the registered grants, for the OpenAPI document. */
export const TokenRoute = Reflector.createDecorator<TokenRouteKind>();

/** The grant of a route whose requests have no `grant_type`. */
export const FixedGrantType = Reflector.createDecorator<string>();
