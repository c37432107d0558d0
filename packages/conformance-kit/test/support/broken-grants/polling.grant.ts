import { Injectable, Module, type Type } from '@nestjs/common';
import { Matches } from 'class-validator';
import {
  Clock,
  type Grant,
  GrantBody,
  type GrantRequest,
  type GrantResult,
  GrantType,
  Identities,
  IdentityModule,
  OAuthError,
  randomSecret,
} from 'customer-authorization-service/grant';
import type { GrantKit } from '../../../src/grant-kit.js';

/** A mistake of the author of a grant that is polled. The grant without a mistake satisfies every rule. */
export type PollingMistake = 'never slows a poll down' | 'creates a customer for a poll' | 'redeems a proof twice';

const INTERVAL_SECONDS = 5;

class PollBody extends GrantBody {
  @Matches(/^[\w-]{43}$/)
  poll!: string;
}

interface Polled {
  lastPoll: number;
  isConfirmed: boolean;
  uses: number;
}

/** A person confirms a proof, which then creates a customer. The proofs are in memory. */
export function pollingGrant(
  mistake?: PollingMistake,
): { grant: Type; modules: Type[] } & GrantKit & Required<Pick<GrantKit, 'pending'>> {
  const proofs = new Map<string, Polled>();
  const start = (isConfirmed: boolean) => {
    const poll = randomSecret('base64url');
    proofs.set(poll, { lastPoll: 0, isConfirmed, uses: 0 });
    return poll;
  };

  @Injectable()
  @GrantType('kit_polling', { body: PollBody, polling: true })
  class PollingGrant implements Grant<PollBody> {
    constructor(
      private readonly identities: Identities,
      private readonly clock: Clock,
    ) {}

    async grant({ body, organization }: GrantRequest<PollBody>): Promise<GrantResult> {
      const organizationId = organization?.id ?? '1f0f7f6e-6c1c-4f43-9d0e-5d3d0f2b7a01';
      const proof = proofs.get(body.poll);
      if (!proof || proof.uses > (mistake === 'redeems a proof twice' ? 1 : 0))
        throw OAuthError.invalidGrant('unknown');
      if (!proof.isConfirmed) {
        if (mistake === 'creates a customer for a poll') await this.identities.create(organizationId);
        const isEarly = this.clock.now() - proof.lastPoll < INTERVAL_SECONDS * 1_000;
        proof.lastPoll = this.clock.now();
        throw isEarly && mistake !== 'never slows a poll down'
          ? OAuthError.slowDown()
          : OAuthError.authorizationPending();
      }
      proof.uses++;
      return this.identities.create(organizationId);
    }
  }

  @Module({ imports: [IdentityModule], providers: [PollingGrant] })
  class PollingModule {}

  return {
    grant: PollingGrant,
    modules: [PollingModule],
    valid: () => ({ poll: start(true) }),
    pending: () => {
      const poll = start(false);
      const confirm = () => proofs.set(poll, { lastPoll: 0, isConfirmed: true, uses: 0 });
      return { parameters: { poll }, confirm, intervalSeconds: INTERVAL_SECONDS };
    },
  };
}
