import { Injectable } from '@nestjs/common';
import { AccessTokens, type InspectedToken } from './access-tokens.js';
import { Denylist } from './denylist.js';

/** Decides whether an access token is valid, and why not (docs/observability.md lists the reasons). */
@Injectable()
export class TokenInspection {
  constructor(
    private readonly tokens: AccessTokens,
    private readonly denylist: Denylist,
  ) {}

  /** @param audiences a token of another audience is inactive, and the database is not asked; all if omitted */
  async inspect(token: string, audiences?: string[]): Promise<InspectedToken> {
    const inspected = this.tokens.inspect(token);
    if (inspected.inactiveReason) return inspected;
    const { claims } = inspected;
    if (audiences?.includes(claims.aud) === false) return { claims, inactiveReason: 'other_audience' };
    const inactiveReason = await this.denylist.endedReason(claims);
    return inactiveReason ? { claims, inactiveReason } : inspected;
  }
}
