import { randomInt } from 'node:crypto';
import { type ExecutionContext, HttpCode, Injectable, Logger, Post, Res } from '@nestjs/common';
import { IsString, Matches } from 'class-validator';
import {
  ApiRoute,
  BearerGuard,
  Caller,
  CustomerGuard,
  type CustomerPrincipal,
  Database,
  OAuthError,
  PublicController,
  sha256,
  ValidatedBody,
  writeStatement,
} from 'customer-authorization-service/grant';
import type { Request, Response } from 'express';
import { type Columns, CreateTables } from '../../../../../src/migrations/schema.js';
import type { RouteKit } from '../../../src/routes/route-kit.js';
import { moduleOf } from '../grant-of.js';

export const APPROVE = 'POST /v2/customer/approval/approve';
export const WRONG_CODE_COUNT = 3;

class ApproveBody {
  @Matches(/^\d{6}$/, { message: 'must be six digits' })
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

function guardOf(mistake?: string): typeof CustomerGuard {
  if (mistake === 'compares no Origin') return LooseGuard;
  return mistake === 'admits any bearer' ? (BearerGuard as typeof CustomerGuard) : CustomerGuard;
}

class Approvals1795600000000 extends CreateTables {
  protected readonly tables = (its: Columns) => [{ name: 'kit_approval', columns: [its.key('code', 64)] }];
}

const STORE = writeStatement<[code: string]>(
  ({ insertIgnore }) => `${insertIgnore} INTO kit_approval (code) VALUES (?)`, // some of many codes are equal
);

/** A customer approves a request of another device, which has a code. */
export function approvalRoute(mistake?: string): RouteKit {
  /** The organizations of the codes of all processes, which a table also has. */
  const codes = new Map<string, string>();
  const newCode = () =>
    mistake === 'creates the code with Math.random'
      ? String(100_000 + Math.floor(Math.random() * 900_000))
      : String(randomInt(100_000, 1_000_000));
  const stored = (code: string) => {
    if (mistake === 'stores the code in plain text') return code;
    return sha256(mistake === 'stores a hash of the code alone' ? code : `a key from a file:${code}`);
  };

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
    @HttpCode(mistake === 'responds without content' ? 204 : 200)
    approve(
      @Caller(guardOf(mistake)) customer: CustomerPrincipal,
      @ValidatedBody(ApproveBody) { code }: ApproveBody,
      @Res({ passthrough: true }) response: Response,
    ): object {
      if (mistake === 'logs the code') new Logger('Approvals').log(`code ${code}`);
      if (mistake === 'responds with an undocumented status') response.status(206);
      this.approvals.approve(code, customer);
      return {};
    }
  }

  return {
    modules: [moduleOf({ controllers: [ApprovalController], providers: [Approvals] })],
    callers: ['customer'],
    actsOn: 'own organization',
    guessable: { parameter: 'code', limit: WRONG_CODE_COUNT },
    migrations: [Approvals1795600000000],
    valid: async ({ organizationId, service }) => {
      const code = newCode();
      codes.set(code, organizationId);
      await service.application.get(Database).execute(STORE, [stored(code)]);
      return { body: { code } };
    },
  };
}
