import { Reflector } from '@nestjs/core';

/** The kinds of token routes: with a `grant_type`, with a group in the path, or with a fixed grant. */
export type TokenRouteKind = 'token' | 'group' | 'fixed-grant';

/** Marks a route that issues customer tokens by the registered grants, for the OpenAPI document. */
export const TokenRoute = Reflector.createDecorator<TokenRouteKind>();

/** The grant of a route whose requests have no `grant_type`. */
export const FixedGrantType = Reflector.createDecorator<string>();
