import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { generate } from 'selfsigned';

/** The callback of a server application, over TLS. It redirects the browser to the pages of the application. */
export class ApplicationSite {
  private constructor(private readonly server: Server) {}

  static async start(host: string, sendsOnTo: string): Promise<ApplicationSite> {
    const { private: key, cert } = await generate([{ name: 'commonName', value: host }], { keyType: 'ec' });
    const server = createServer({ key, cert }, ({ url = '' }, response) => {
      response.writeHead(302, { Location: sendsOnTo + url }).end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new ApplicationSite(server);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }
}
