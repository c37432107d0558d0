import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.oauth2.server.resource.web.BearerTokenResolver;

@Configuration
class TokenResolver {
  /** Spring's own resolver rejects the colon of REGION:JWS as a malformed token. */
  @Bean
  BearerTokenResolver bearerTokenResolver() {
    return request -> {
      String header = request.getHeader("Authorization");
      boolean isBearer = header != null && header.regionMatches(true, 0, "Bearer ", 0, 7);
      return isBearer ? header.substring(7) : null;
    };
  }
}
