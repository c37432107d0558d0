import { Reflector } from '@nestjs/core';

/** Where a token route takes the grant from, and whether its path names a group. */
export type TokenRouteKind = 'token' | 'group' | 'fixed-grant';

/** Marks a route that issues customer tokens by the registered grants, for the OpenAPI document. */
export const TokenRoute = Reflector.createDecorator<TokenRouteKind>();

/** Names the one grant of a route whose requests send no `grant_type`. */
export const FixedGrantType = Reflector.createDecorator<string>();
