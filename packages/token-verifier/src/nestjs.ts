import { bearerToken } from './bearer.js';
import { TokenVerifierError } from './errors.js';
import type { TokenVerifier } from './token-verifier.js';

/** What the guard uses of NestJS's ExecutionContext. */
interface HttpContext {
  // biome-ignore lint/suspicious/noExplicitAny: the types of NestJS, which has the same on Express and Fastify
  switchToHttp(): { getRequest(): any; getResponse(): any };
}

/** NestJS guard: sets `request.auth` to the claims, or throws a TokenVerifierError, which becomes the response. */
export class TokenGuard {
  constructor(private readonly verifier: Pick<TokenVerifier, 'verify'>) {}

  async canActivate(context: HttpContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest();
    try {
      request.auth = await this.verifier.verify(bearerToken(request));
      return true;
    } catch (error) {
      if (error instanceof TokenVerifierError)
        for (const [name, value] of Object.entries(error.headers)) http.getResponse().header(name, value);
      throw error;
    }
  }
}
