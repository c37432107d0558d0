import { Module } from '@nestjs/common';
import { OperatorGuard } from './operator.guard.js';
import { OperatorCredentials } from './operator-credentials.js';

/** Authenticates the operator, for the routes on the management port that only the operator may call. */
@Module({
  providers: [OperatorCredentials, OperatorGuard],
  exports: [OperatorCredentials, OperatorGuard],
})
export class OperatorModule {}
