import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ApiRoute, PublicController } from '@customer-authorization/service/grant';
import { applyDecorators, Get, Header } from '@nestjs/common';

const PAGES = join(import.meta.dirname, '../../pages');
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const Page = (path: string, summary: string): MethodDecorator =>
  applyDecorators(
    Get(path),
    Header('Content-Security-Policy', CONTENT_SECURITY_POLICY),
    Header('Content-Type', 'text/html; charset=utf-8'),
    ApiRoute({ summary, response: 'text/html' }),
  );

const Script = (name: string): MethodDecorator =>
  applyDecorators(
    Get(name),
    Header('Content-Type', 'text/javascript; charset=utf-8'),
    ApiRoute({ summary: `Get the script ${name}`, response: 'text/javascript' }),
  );

const read = (name: string): string => readFileSync(join(PAGES, name), 'utf8');

/** Two pages to try the flow in two browsers. The service serves routes below `/try` only with TRY_IT=true. */
@PublicController('try/device-approval')
export class TryItController {
  private readonly files = {
    newDevice: read('new-device.html'),
    newDeviceScript: read('new-device.js'),
    decide: read('decide.html'),
    decideScript: read('decide.js'),
    requests: read('requests.js'),
    qrEncoder: readFileSync(fileURLToPath(import.meta.resolve('qr')), 'utf8'),
  };

  @Page('', 'Show the page of the new device')
  newDevice(): string {
    return this.files.newDevice;
  }

  @Page('decide', 'Show the page of the signed-in device')
  decide(): string {
    return this.files.decide;
  }

  @Script('new-device.js')
  newDeviceScript(): string {
    return this.files.newDeviceScript;
  }

  @Script('decide.js')
  decideScript(): string {
    return this.files.decideScript;
  }

  @Script('requests.js')
  requests(): string {
    return this.files.requests;
  }

  @Script('qr.js')
  qrEncoder(): string {
    return this.files.qrEncoder;
  }
}
