import { Module } from '@nestjs/common';
import { CookieGrantModule } from './grants/cookie/cookie-grant.module.js';
import { TokenModule } from './token/token.module.js';

/** The service: its endpoints, and one line for each grant. */
@Module({
  imports: [TokenModule, CookieGrantModule],
})
export class AppModule {}
