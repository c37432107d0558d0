import { randomInt } from 'node:crypto';
import { type ExecutionContext, HttpCode, Injectable, Logger, Module, Post, Res } from '@nestjs/common';
import { IsDefined, IsString, Matches, MaxLength } from 'class-validator';
import {
  ApiRoute,
  BearerGuard,
  Caller,
  CustomerGuard,
  type CustomerPrincipal,
  OAuthError,
  PublicController,
  ValidatedBody,
} from 'customer-authorization-service/grant';
import type { Request, Response } from 'express';
import type { RouteKit } from '../../../src/routes/route-kit.js';

/** A mistake of the author of a route. The route without a mistake satisfies every rule. */
export type RouteMistake =
  | 'admits any bearer'
  | 'compares no Origin'
  | 'admits any organization'
  | 'counts no guesses'
  | 'has no rule for a parameter'
  | 'throws for an unusual text'
  | 'repeats the code in a hint'
  | 'logs the code'
  | 'responds with an undocumented status'
  | 'is described without its body';

export const APPROVE = 'POST /v2/customer/approval/approve';
export const WRONG_CODE_COUNT = 3;

class ApproveBody {
  @Matches(/^\d{6}$/, { message: 'must be six digits' })
  code!: string;
}

class LooseBody {
  @IsDefined()
  code!: string;
}

/** Removes the `Origin`, so that the guard has nothing to compare. */
@Injectable()
class LooseGuard extends CustomerGuard {
  override canActivate(context: ExecutionContext): Promise<boolean> {
    delete context.switchToHttp().getRequest<Request>().headers.origin;
    return super.canActivate(context);
  }
}

class OtherBody {
  @IsString()
  other!: string;
}

class TextBody {
  @IsString()
  @MaxLength(100)
  code!: string;
}

function bodyOf(mistake?: RouteMistake): typeof ApproveBody {
  if (mistake === 'has no rule for a parameter') return LooseBody;
  return mistake === 'throws for an unusual text' ? TextBody : ApproveBody;
}

function guardOf(mistake?: RouteMistake): typeof CustomerGuard {
  if (mistake === 'compares no Origin') return LooseGuard;
  return mistake === 'admits any bearer' ? (BearerGuard as typeof CustomerGuard) : CustomerGuard;
}

/** A customer approves a request of another device, which has a code. */
export function approvalRoute(mistake?: RouteMistake): RouteKit {
  const Body = bodyOf(mistake);
  /** The codes of all processes, as a table has them. */
  const codes = new Map<string, string>();

  @Injectable()
  class Approvals {
    private readonly wrongCodes = new Map<string, number>();

    approve(code: string, { entityId, organizationId }: CustomerPrincipal): void {
      const wrongCodes = this.wrongCodes.get(entityId) ?? 0;
      if (wrongCodes >= WRONG_CODE_COUNT && mistake !== 'counts no guesses') throw OAuthError.rateLimited(60, 'codes');
      const owner = codes.get(code);
      if (owner === organizationId || (owner && mistake === 'admits any organization')) return;
      this.wrongCodes.set(entityId, wrongCodes + 1);
      throw OAuthError.invalidRequest(mistake === 'repeats the code in a hint' ? `code: ${code}` : 'code: unknown');
    }
  }

  @PublicController('v2/customer/approval')
  class ApprovalController {
    constructor(private readonly approvals: Approvals) {}

    @Post('approve')
    @ApiRoute({
      summary: 'Approve a request',
      errorStatuses: [429],
      ...(mistake === 'is described without its body' && { body: OtherBody }),
    })
    @HttpCode(200)
    approve(
      @Caller(guardOf(mistake)) customer: CustomerPrincipal,
      @ValidatedBody(Body) { code }: ApproveBody,
      @Res({ passthrough: true }) response: Response,
    ): object {
      if (mistake === 'logs the code') new Logger('Approvals').log(`code ${code}`);
      if (mistake === 'throws for an unusual text' && !/^\d+$/.test(code)) throw new TypeError('no digits');
      if (mistake === 'responds with an undocumented status') response.status(206);
      this.approvals.approve(code, customer);
      return {};
    }
  }

  @Module({ controllers: [ApprovalController], providers: [Approvals] })
  class ApprovalModule {}

  return {
    modules: [ApprovalModule],
    callers: ['customer'],
    actsOn: 'own organization',
    guessable: { parameter: 'code', limit: WRONG_CODE_COUNT },
    valid: ({ organizationId }) => {
      const code = String(randomInt(100_000, 1_000_000));
      codes.set(code, organizationId);
      return { body: { code } };
    },
  };
}
