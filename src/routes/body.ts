import type { Type } from '@nestjs/common';
import type { Request } from 'express';
import { readBody } from '../oauth/body-reader.js';
import { parseFormOrJson } from '../oauth/form.js';
import { parseJsonObject } from '../oauth/json-object.js';
import { readParameters } from '../oauth/parameters.js';

/** How a route reads its body. */
export interface BodyOptions {
  /** Whether the body may also be `application/x-www-form-urlencoded`, besides JSON. */
  form?: boolean;
  /** Whether an empty body counts as a body without parameters. */
  mayBeEmpty?: boolean;
}

/** How to read the body of a route. */
export interface BodyDeclaration extends BodyOptions {
  body: Type<object>;
}

/**
 * Reads the body of a request and validates its parameters (protocol §2.4 and §2.5).
 *
 * @throws OAuthError `invalid_request`, `payload_too_large`
 * @internal
 */
export async function readValidatedBody(
  request: Request,
  { body, form, mayBeEmpty }: BodyDeclaration,
): Promise<object> {
  const text = await readBody(request);
  if (mayBeEmpty && text === '') return readParameters(body, {});
  const parameters = form ? parseFormOrJson(text, request.headers['content-type']) : parseJsonObject(text);
  return readParameters(body, parameters as Record<string, unknown>);
}
