"""Published formats of keys, tokens and passwords, as tables of data."""

from __future__ import annotations

from typing import Literal, NamedTuple

SOME_BITS = 1.5  # a character: rules out `ghp_xxxxxxxx` and the like
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


class Format(NamedTuple):
    """A token format and its documented example.

    `anchors` are literal texts, one of which every match contains, `lead` characters after its start. Where
    `any_case` is set they are lower case and found in any case. The secret is the group `s` of `pattern`, or the
    whole match. After its anchor it carries at least `bits` of Shannon entropy a character; 0 accepts any.

    `pattern` is compiled when one of the anchors is found, and matches in time linear in the length of the text.

    `context` is set where only the text around a value makes it suspicious. Such a value is a secret unless it is a
    placeholder (`any`), or only if it also looks random (`random`).

    `example` is a template, so that this repository holds no token: `{w36}` stands for 36 random characters of
    an alphabet: w letters and digits, a letters, l lower case and digits, u upper case and digits 2-7, h hexadecimal,
    d digits, b Base64 for URLs, s Base64.
    """

    kind: str
    anchors: tuple[str, ...]
    pattern: str
    example: str
    bits: float = SOME_BITS
    lead: int = 0
    any_case: bool = False
    context: Literal["", "any", "random"] = ""


CLOUDS = (
    Format("aws_key_id", ("AKIA", "ASIA", "ABIA", "ACCA"), r"A(?:KI|SI|BI|CC)A[A-Z2-7]{16}(?<!EXAMPLE)\b", "AKIA{u16}"),
    Format("aws_session_token", ("IQoJb3JpZ2lu",), r"IQoJb3JpZ2lu[A-Za-z0-9+/=]{80,3000}", "IQoJb3JpZ2lu{s200}"),
    Format("aws_session_token", ("FwoGZXIvYXdz",), r"FwoGZXIvYXdz[A-Za-z0-9+/=]{80,3000}", "FwoGZXIvYXdz{s200}"),
    Format("aws_bedrock_key", ("ABSK",), r"ABSK[A-Za-z0-9+/]{100,300}={0,2}", "ABSK{s128}"),
    Format("aws_bedrock_key", ("bedrock-api-key-YmVkcm9jay",), r"bedrock-api-key-YmVkcm9jay[A-Za-z0-9+/=]{20,4000}",
           "bedrock-api-key-YmVkcm9jay{s80}"),
    Format("google_key", ("AIza",), r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])", "AIza{b35}"),
    Format("google_token", ("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,500}", "ya29.{b120}"),
    Format("google_client_secret", ("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{28}(?![A-Za-z0-9_-])", "GOCSPX-{b28}"),
    Format("google_refresh_token", ("1//0",), r"1//0[A-Za-z0-9_-]{40,250}", "1//0{b60}", bits=3.0),
    Format("azure_key", ("accountkey=",), r"(?i:AccountKey)=(?P<s>[A-Za-z0-9+/]{40,100}={0,2})",
           "AccountKey={s86}==", any_case=True),
    Format("azure_key", ("sharedaccesskey=",), r"(?i:SharedAccessKey)=(?P<s>[A-Za-z0-9+/]{40,100}={0,2})",
           "SharedAccessKey={s43}=", any_case=True),
    Format("azure_key", ("JQQJ9",), r"[A-Za-z0-9]{52}JQQJ9[A-Za-z0-9]{27}\b", "{w52}JQQJ99{w26}", lead=52),
    Format("azure_client_secret", ("Q~",), r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-])",
           "{w3}8Q~{b34}", bits=3.0, lead=4),
    Format("azure_signature", ("&sig=", "?sig="), r"[?&]sig=(?P<s>[A-Za-z0-9+/]{43}=|[A-Za-z0-9%+/]{43,90}%3[Dd])",
           "?sv=2022-11-02&sig={w43}%3D"),
    Format("azure_devops_token", ("AZDO",), r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}\b", "{w76}AZDO{w4}", lead=76),
    Format("digitalocean_token", ("_v1_",), r"do[opr]_v1_[a-f0-9]{64}\b", "dop_v1_{h64}", lead=3),
    Format("digitalocean_spaces_key", ("DO00",), r"DO00[A-Z0-9]{16}\b", "DO00{u16}", bits=2.5),
    Format("alibaba_key_id", ("LTAI",), r"LTAI[A-Za-z0-9]{12,26}\b", "LTAI5t{w18}", bits=2.5),
    Format("tencent_key_id", ("AKID",), r"AKID[A-Za-z0-9]{32}\b", "AKID{w32}", bits=3.0),
    Format("yandex_key", ("AQVN",), r"AQVN[A-Za-z0-9_-]{35,38}(?![A-Za-z0-9_-])", "AQVN{b36}"),
    Format("heroku_key", ("HRKU-",), r"HRKU-(?:AA[A-Za-z0-9_-]{40,70}|" + _UUID + r")", "HRKU-AA{b58}"),
    Format("cloudflare_origin_key", ("v1.0-",), r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}\b", "v1.0-{h24}-{h146}"),
    Format("fly_token", ("fo1_",), r"fo1_[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])", "fo1_{b43}"),
    Format("fly_token", ("fm",), r"fm(?:1[ar]|2)_[A-Za-z0-9+/]{90,2000}={0,3}", "fm2_{s140}"),
    Format("netlify_token", ("nf",), r"nf[pco]_[A-Za-z0-9]{36,40}\b", "nfp_{w36}"),
    Format("vercel_token", ("vc",), r"vc[aikpr]_(?=[A-Za-z]{0,99}[0-9])[A-Za-z0-9]{24,100}\b", "vcp_{w20}7{w35}",
           bits=3.0),
    Format("render_key", ("rnd_",), r"rnd_(?=[A-Za-z]{0,39}[0-9])[A-Za-z0-9]{28,40}\b", "rnd_{w10}7{w17}", bits=3.0),
    Format("scaleway_key_id", ("SCW",), r"SCW[A-Z0-9]{17}\b", "SCW{u17}", bits=2.5),
    Format("openshift_token", ("sha256~",), r"sha256~[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])", "sha256~{b43}"),
    Format("tailscale_key", ("tskey-",), r"tskey-[a-z]{3,12}-[A-Za-z0-9]{8,32}-[A-Za-z0-9]{20,60}\b",
           "tskey-auth-{w16}-{w32}"),
)  # fmt: skip

DATABASES_AND_SECRET_STORES = (
    Format("databricks_token", ("dapi",), r"dapi[a-f0-9]{32}(?:-[0-9])?\b", "dapi{h32}"),
    Format("planetscale_token", ("pscale_",), r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,64}", "pscale_tkn_{b43}"),
    Format("supabase_key", ("sbp_",), r"sbp_[a-f0-9]{40}\b", "sbp_{h40}"),
    Format("supabase_key", ("sb_secret_",), r"sb_secret_[A-Za-z0-9_-]{20,80}", "sb_secret_{b31}"),
    Format("neon_key", ("napi_",), r"napi_[a-z0-9]{64}\b", "napi_{l64}"),
    Format("vault_token", ("hv",), r"hv[sbr]\.[A-Za-z0-9_-]{24,300}", "hvs.{b90}", bits=3.0),
    Format("terraform_token", (".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}",
           "{w14}.atlasv1.{b67}", lead=14),
    Format("doppler_token", ("dp.",),
           r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}\b", "dp.pt.{w43}"),
    Format("pulumi_token", ("pul-",), r"pul-[a-f0-9]{40}\b", "pul-{h40}"),
    Format("onepassword_token", ("ops_eyJ",), r"ops_eyJ[A-Za-z0-9+/]{200,2000}={0,3}", "ops_eyJ{s260}"),
    Format("onepassword_secret_key", ("A3-",),
           r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}\b",
           "A3-{u6}-{u6}-{u5}-{u5}-{u5}-{u5}"),
    Format("age_key", ("AGE-SECRET-KEY-1",), r"AGE-SECRET-KEY-1[A-Z0-9]{50,64}\b", "AGE-SECRET-KEY-1{u58}"),
)  # fmt: skip

MODEL_PROVIDERS = (
    Format("anthropic_key", ("sk-ant-",), r"sk-ant-[A-Za-z0-9_-]{16,200}", "sk-ant-api03-{b93}AA"),
    Format("openai_key", ("sk-",),
           r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,200}", "sk-proj-{b74}T3BlbkFJ{b74}"),
    Format("openai_key", ("sk-",), r"sk-(?=[A-Za-z]{0,63}[0-9])[A-Za-z0-9]{40,64}\b", "sk-{w20}T3BlbkFJ{w20}"),
    Format("openrouter_key", ("sk-or-v1-",), r"sk-or-v1-[a-f0-9]{64}\b", "sk-or-v1-{h64}"),
    Format("deepseek_key", ("sk-",), r"sk-[a-f0-9]{32}\b", "sk-{h32}", bits=2.5),
    Format("huggingface_token", ("hf_",), r"hf_[A-Za-z0-9]{30,60}\b", "hf_{w34}"),
    Format("huggingface_token", ("api_org_",), r"api_org_[A-Za-z]{34}\b", "api_org_{a34}", bits=3.0),
    Format("groq_key", ("gsk_",), r"gsk_[A-Za-z0-9]{48,56}\b", "gsk_{w52}"),
    Format("xai_key", ("xai-",), r"xai-[A-Za-z0-9]{70,90}\b", "xai-{w80}"),
    Format("perplexity_key", ("pplx-",), r"pplx-[A-Za-z0-9]{40,60}\b", "pplx-{w48}"),
    Format("replicate_token", ("r8_",), r"r8_[A-Za-z0-9]{37}\b", "r8_{w37}"),
    Format("fireworks_key", ("fw_",), r"fw_(?=[A-Za-z]{0,23}[0-9])[A-Za-z0-9]{22,24}\b", "fw_{w10}7{w13}", bits=3.2),
    Format("nvidia_key", ("nvapi-",), r"nvapi-[A-Za-z0-9_-]{60,70}(?![A-Za-z0-9_-])", "nvapi-{b64}"),
    Format("langsmith_key", ("lsv2_",), r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}\b",
           "lsv2_pt_{h32}_{h10}"),
    Format("pinecone_key", ("pcsk_",), r"pcsk_[A-Za-z0-9]{5,6}_[A-Za-z0-9]{63}\b", "pcsk_{w6}_{w63}"),
    Format("elevenlabs_key", ("sk_",), r"sk_[a-f0-9]{48}\b", "sk_{h48}"),
    Format("cerebras_key", ("csk-",), r"csk-[a-z0-9]{48}\b", "csk-{l48}"),
    Format("tavily_key", ("tvly-",), r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{32}\b", "tvly-dev-{w32}"),
    Format("wandb_key", ("wandb_v1_",), r"wandb_v1_[A-Za-z0-9_-]{40,100}", "wandb_v1_{b77}"),
)  # fmt: skip

GIT_HOSTS = (
    Format("github_token", ("gh",), r"gh[pousr]_[A-Za-z0-9]{36,255}\b", "ghp_{w36}"),
    Format("github_token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{40,255}\b", "github_pat_{w22}_{w59}"),
    Format("gitlab_token",
           ("gl",), r"gl(?:pat|dt|rtr?|ptt|cbt|ft|imt|agent|soat|oas|ffct|wt)-[A-Za-z0-9_.-]{20,320}", "glpat-{b20}"),
    Format("gitlab_token", ("GR1348941",), r"GR1348941[A-Za-z0-9_-]{20,50}", "GR1348941{b20}"),
    Format("bitbucket_password", ("ATBB",), r"ATBB[A-Za-z0-9]{32}\b", "ATBB{w32}"),
    Format("atlassian_token", ("ATATT3", "ATCTT3"), r"AT[AC]TT3[A-Za-z0-9_=-]{100,300}", "ATATT3xFfGF0{b170}={h8}"),
    Format("sourcegraph_token", ("sgp_",), r"sgp_(?:(?:[a-f0-9]{16}|local)_)?[a-f0-9]{40}\b", "sgp_{h16}_{h40}"),
)  # fmt: skip

CI_SERVICES = (
    Format("circleci_token", ("CCIP",), r"CCIP(?:AT|RJ)_[A-Za-z0-9]{20,24}_[a-f0-9]{40}\b",
           "CCIPAT_{w22}_{h40}"),
    Format("buildkite_token", ("bk",), r"bk(?:ua|aj|ct)_[a-f0-9]{40}\b", "bkua_{h40}"),
    Format("sonarqube_token", ("sq",), r"sq[pua]_[a-f0-9]{40}\b", "squ_{h40}"),
    Format("harness_token", ("pat.", "sat."), r"[ps]at\.[A-Za-z0-9_-]{22}\.[a-f0-9]{24}\.[A-Za-z0-9]{20}\b",
           "pat.{b22}.{h24}.{w20}"),
    Format("prefect_key", ("pn",), r"pn[ub]_[A-Za-z0-9]{36}\b", "pnu_{w36}"),
)  # fmt: skip

PACKAGE_REGISTRIES = (
    Format("npm_token", ("npm_",), r"npm_[A-Za-z0-9]{36}\b", "npm_{w36}"),
    Format("npm_token", (":_authToken=", ":_password="), r":_(?:authToken|password)=\"?(?P<s>[A-Za-z0-9+/=_-]{20,200})",
           "//registry.example.org/:_authToken={h36}", bits=2.5),
    Format("pypi_token", ("pypi-AgE",), r"pypi-AgE[A-Za-z0-9_-]{50,300}", "pypi-AgEIcHlwaS5vcmc{b130}"),
    Format("rubygems_key", ("rubygems_",), r"rubygems_[a-f0-9]{48}\b", "rubygems_{h48}"),
    Format("crates_token", ("cio",), r"cio[A-Za-z0-9]{32}\b", "cio{w32}", bits=3.5),
    Format("docker_token", ("dckr_",), r"dckr_[po]at_[A-Za-z0-9_-]{27,40}", "dckr_pat_{b27}"),
    Format("nuget_key", ("oy2",), r"oy2[a-z0-9]{43}\b", "oy2{l43}", bits=3.0),
    Format("clojars_token", ("CLOJARS_",), r"CLOJARS_[a-z0-9]{60}\b", "CLOJARS_{l60}"),
    Format("artifactory_key", ("AKCp",), r"AKCp[A-Za-z0-9]{60,80}\b", "AKCp8{w68}"),
    Format("artifactory_key", ("cmVmdGtu",), r"cmVmdGtu[A-Za-z0-9]{56}\b", "cmVmdGtu{w56}"),
    Format("packagist_token", ("packagist_",), r"packagist_[a-z]{3}_[a-f0-9]{68}\b", "packagist_out_{h68}"),
)  # fmt: skip

OBSERVABILITY = (
    Format("grafana_token", ("glsa_",), r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}\b", "glsa_{w32}_{h8}"),
    Format("grafana_token", ("glc_",), r"glc_[A-Za-z0-9+/]{32,400}={0,2}", "glc_{s88}", bits=3.0),
    Format("new_relic_key", ("NR",),
           r"NR(?:AK|JS|II|IQ|RA|BR)-[A-Za-z0-9_-]{19,40}", "NRAK-{u27}", bits=2.5),
    Format("new_relic_key", ("FFFFNRAL",), r"[a-f0-9]{32}FFFFNRAL\b", "{h32}FFFFNRAL", lead=32),
    Format("dynatrace_token", ("dt0",), r"dt0[cs](?:01|16)\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}\b",
           "dt0c01.{u24}.{u64}"),
    Format("sentry_token", ("sntry",), r"sntry(?:u_[a-f0-9]{64}\b|s_eyJ[A-Za-z0-9+/=_-]{80,500})",
           "sntryu_{h64}"),
    Format("honeycomb_key", ("hca",), r"hca(?:ik|ic|mk)_[a-z0-9]{58}\b", "hcaik_{l58}"),
    Format("posthog_key", ("phx_",), r"phx_[A-Za-z0-9]{40,60}\b", "phx_{w43}"),
    Format("launchdarkly_key", ("sdk-",),
           r"sdk-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b",
           "sdk-{h8}-{h4}-4{h3}-a{h3}-{h12}"),
    Format("postman_key", ("PMAK-",), r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}\b", "PMAK-{h24}-{h34}"),
)  # fmt: skip

CHAT_AND_MAIL = (
    Format("slack_token", ("xox",),
           r"xox[abcdeoprs]-[A-Za-z0-9%-]{10,250}", "xoxb-{d12}-{d13}-{w24}"),
    Format("slack_token", ("xoxe.xox",), r"xoxe\.xox[bp]-[0-9]-[A-Za-z0-9]{100,250}", "xoxe.xoxp-1-{w146}"),
    Format("slack_token", ("xapp-",), r"xapp-[0-9]-[A-Z0-9]{8,20}-[0-9]{8,20}-[a-z0-9]{50,80}",
           "xapp-1-A{u10}-{d13}-{h64}"),
    Format("slack_webhook", ("hooks.slack.com/",), r"hooks\.slack\.com/(?:services|workflows|triggers)/"
           r"(?P<s>[A-Za-z0-9+/]{20,100})", "https://hooks.slack.com/services/T{u8}/B{u8}/{w24}"),
    Format("discord_webhook", ("/api/webhooks/",), r"/api/webhooks/[0-9]{17,20}/(?P<s>[A-Za-z0-9_-]{60,80})",
           "https://discord.com/api/webhooks/{d18}/{b68}"),
    Format("discord_token", (".",), r"(?<=[MNO][A-Za-z0-9_-]{23})\.[A-Za-z0-9_-]{6}\.(?P<s>[A-Za-z0-9_-]{27,38})"
           r"(?![A-Za-z0-9_.-])", "M{w23}.{w6}.{w38}", bits=3.5),
    Format("telegram_token", (":AA",), r"(?<=[0-9]{8}):(?P<s>AA[A-Za-z0-9_-]{32,33})(?![A-Za-z0-9_-])",
           "{d10}:AA{b33}", bits=3.0),
    Format("teams_webhook", (".webhook.office.com/",), r"\.webhook\.office\.com/webhookb2/(?P<s>[a-f0-9-]{36}@"
           r"[a-f0-9-]{36}/IncomingWebhook/[a-f0-9]{32}/[A-Za-z0-9_/-]{36,120})",
           "https://acme.webhook.office.com/webhookb2/{h8}-{h4}-{h4}-{h4}-{h12}@{h8}-{h4}-{h4}-{h4}-{h12}"
           "/IncomingWebhook/{h32}/{h8}-{h4}-{h4}-{h4}-{h12}"),
    Format("sendgrid_key", ("SG.",), r"SG\.[A-Za-z0-9_-]{16,40}\.[A-Za-z0-9_-]{30,60}", "SG.{b22}.{b43}"),
    Format("mailgun_key", ("key-",), r"(?<!-)key-[a-f0-9]{32}\b", "key-{h32}", bits=2.5),
    Format("mailchimp_key", ("-us",), r"[a-f0-9]{32}-us[0-9]{1,2}\b", "{h32}-us12", bits=2.5, lead=32),
    Format("brevo_key", ("xkeysib-", "xsmtpsib-"), r"x(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}\b",
           "xkeysib-{h64}-{w16}"),
    Format("resend_key", ("re_",), r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}\b", "re_{w8}_{w24}", bits=3.0),
    Format("twilio_key", ("SK",), r"SK[a-f0-9]{32}\b", "SK{h32}", bits=2.5),
)  # fmt: skip

PAYMENT = (
    Format("stripe_key", ("k_live_", "k_test_", "k_prod_"), r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,250}\b",
           "sk_live_{w24}", lead=1),
    Format("stripe_webhook_secret", ("whsec_",), r"whsec_[A-Za-z0-9+/]{24,80}={0,2}", "whsec_{w32}", bits=2.5),
    Format("square_token", ("sq0",), r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,43}",
           "sq0atp-{b22}"),
    Format("square_token", ("EAAA",), r"EAAA[A-Za-z0-9_-]{60}(?![A-Za-z0-9_-])", "EAAA{b60}", bits=4.0),
    Format("paypal_token", ("access_token$",), r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}\b",
           "access_token$production${l16}${h32}"),
    Format("flutterwave_key", ("FLWSECK",), r"FLWSECK(?:_TEST)?-[a-z0-9]{12,40}(?:-X)?\b", "FLWSECK-{h32}-X"),
    Format("plaid_token", ("access-sandbox-", "access-production-"), r"access-(?:sandbox|production)-" + _UUID + r"\b",
           "access-production-{h8}-{h4}-{h4}-{h4}-{h12}"),
    Format("shopify_token", ("shp",),
           r"shp(?:at|ca|pa|ss|tka|ua)_[a-fA-F0-9]{32}\b", "shpat_{h32}"),
    Format("razorpay_key", ("rzp_",), r"rzp_(?:live|test)_[A-Za-z0-9]{14}\b", "rzp_live_{w14}"),
    Format("easypost_key", ("EZAK", "EZTK"), r"EZ[AT]K[A-Za-z0-9]{54}\b", "EZAK{w54}"),
    Format("shippo_token", ("shippo_",), r"shippo_(?:live|test)_[a-f0-9]{40}\b",
           "shippo_live_{h40}"),
)  # fmt: skip

PRODUCTIVITY = (
    Format("notion_token", ("ntn_",), r"ntn_[0-9]{11}[A-Za-z0-9]{35}\b", "ntn_{d11}{w35}"),
    Format("notion_token", ("secret_",), r"secret_(?=[A-Za-z]{0,42}[0-9])[A-Za-z0-9]{43}\b", "secret_{w43}", bits=3.5),
    Format("linear_key", ("lin_",), r"lin_(?:api_[A-Za-z0-9]{40}|oauth_[a-f0-9]{64})\b",
           "lin_api_{w40}"),
    Format("airtable_token", ("pat",), r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}\b", "pat{w14}.{h64}"),
    Format("figma_token", ("figd_",), r"figd_[A-Za-z0-9_-]{38,60}", "figd_{b40}"),
    Format("typeform_token", ("tfp_",), r"tfp_[A-Za-z0-9_.=-]{40,70}", "tfp_{b59}"),
    Format("contentful_token", ("CFPAT-",), r"CFPAT-[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])", "CFPAT-{b43}"),
    Format("hubspot_token", ("pat-",), r"pat-(?:na|eu|ap)[0-9]-" + _UUID + r"\b",
           "pat-na1-{h8}-{h4}-{h4}-{h4}-{h12}"),
    Format("dropbox_token", ("sl.",), r"sl\.(?:u\.)?[A-Za-z0-9_-]{120,2000}", "sl.{b138}"),
    Format("facebook_token", ("EAA",), r"EAA[A-Z][A-Za-z0-9]{80,300}\b", "EAACEdEose0cBA{w150}"),
    Format("twitter_token", ("AAAAAAAAAAAAAAAAAAAAA",), r"A{21,24}[A-Za-z0-9]{3,20}(?:%[0-9A-F]{2}[A-Za-z0-9]{1,60}){1,6}",
           "AAAAAAAAAAAAAAAAAAAAA{w8}%2F{w20}%3D{w40}"),
    Format("mapbox_token", ("sk.eyJ", "tk.eyJ"), r"[st]k\.eyJ[A-Za-z0-9_-]{40,300}\.[A-Za-z0-9_-]{20,30}",
           "sk.eyJ{w70}.{b22}"),
    Format("adobe_client_secret", ("p8e-",), r"p8e-[A-Za-z0-9_-]{28,36}(?![A-Za-z0-9_-])", "p8e-{h32}", bits=2.5),
    Format("readme_key", ("rdme_",), r"rdme_[a-z0-9]{70}\b", "rdme_{l70}"),
    Format("duffel_token", ("duffel_",), r"duffel_(?:live|test)_[A-Za-z0-9_=-]{43}",
           "duffel_live_{b43}"),
)  # fmt: skip

FIXED_FORMATS = (
    Format("jwt", ("eyJ",),
           r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))eyJ[A-Za-z0-9_-]{10,2000}+\.eyJ[A-Za-z0-9_-]{10,4000}+\.[A-Za-z0-9_-]{10,1000}",
           "eyJhbGciOiJIUzI1NiJ9.eyJ{w40}.{b43}", bits=0),
    Format("private_key", ("-----BEGIN ",),
           r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?!['\"])"
           r"(?:[^-\"]|-(?!----)){0,20000}+(?:-----END [A-Z0-9 ]{0,40}-----)?",
           "-----BEGIN EC PRIVATE KEY-----\n{s64}\n{s60}\n-----END EC PRIVATE KEY-----", bits=0),
    Format("private_key", ("Private-Lines: ",), r"Private-Lines: [0-9]{1,3}(?:\r?\n|(?:\\r)?\\n)(?P<s>(?:[A-Za-z0-9+/=]{1,64}(?:\r?\n|(?:\\r)?\\n)){1,200})",
           "Private-Lines: 2\n{s64}\n{s24}\n", bits=0),
)  # fmt: skip

CONTEXT_FORMATS = (
    Format("authorization", ("authorization", "x-api-key", "private-token", "x-auth-token", "x-vault-token"),
           r"(?i:authorization|x-api-key|private-token|x-auth-token|x-vault-token)\\?['\"]?\s{0,3}[:=]\s{0,3}\\?['\"]?"
           r"(?i:(?:bearer|basic|token|bot)\s{1,3})?(?P<s>[\w.~+/=-]{16,2000})",
           "Authorization: Bearer {w32}", bits=3.0, any_case=True, context="random"),
    Format("cookie", ("cookie:", "set-cookie:"),
           r"(?:^|(?<=['\"])|(?<=\\n))(?i:set-)?(?i:cookie:)\s{0,3}(?P<s>[^\r\n'\"]{8,2000})",
           "Cookie: sid={w26}", bits=0, any_case=True),
    Format("url_password", ("://",), r"://[^\s:/@'\"<>]{0,100}:(?P<s>(?!\[)[^\s/@'\"<>]{3,300})@",
           "postgres://app:{w20}@db.example.org:5432/app", bits=0, context="any"),
    Format("connection_string", (";password=", ";pwd="), r"(?i:;\s{0,3}(?:password|pwd)=)(?P<s>[^;'\"\s]{6,200})",
           "Server=db;Database=app;User Id=app;Password={w20};", any_case=True, context="any"),
    Format("netrc_password", ("machine ",),
           r"machine\s{1,8}\S{1,200}\s{1,8}login\s{1,8}\S{1,100}\s{1,8}password\s{1,8}(?P<s>[^\s'\"{}<>]{6,200})",
           "machine api.example.org login app password {w20}", context="any"),
    Format("docker_login", ("\"auth",), r"\"auth\\?\"\s{0,3}:\s{0,3}\\?\"(?P<s>(?:[A-Za-z0-9+/]{4}){3,100}"
           r"(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==))\\?\"",
           "{\"auths\": {\"ghcr.io\": {\"auth\": \"YXBwO{s20}7{s14}\"}}}", bits=3.0, context="random"),
    Format("curl_user", ("curl ",),
           r"curl [^\n|]{0,200}?(?:-u|--user)[ =]{0,2}['\"]?[^\s:'\"]{1,60}:(?P<s>[^\s'\"]{6,200})",
           "curl -s -u app:{w20} https://example.org", context="any"),
    Format("assigned", ("token", "secret", "passwd", "password", "passphrase", "credential", "key"),
           r"(?i:token|secret|passwd|password|passphrase|credentials?|(?:(?<=api)|(?<=api[_-])|(?<=secret)|"
           r"(?<=secret[_-])|(?<=access)|(?<=access[_-])|(?<=private)|(?<=private[_-])|(?<=signing)|(?<=signing[_-])|"
           r"(?<=encryption)|(?<=encryption[_-])|(?<=auth)|(?<=auth[_-]))key)"
           r"\\?['\"]?\s{0,3}(?::=|=>|[:=])\s{0,3}\\?['\"]?"
           r"(?P<s>(?![A-Za-z_]\w{0,60}(?:\.\w{1,60})+\()[A-Za-z0-9+/_=.~!@#$%^&*-]{12,500})",
           "api_key = {h32}", bits=3.0, any_case=True, context="random"),
)  # fmt: skip

FORMATS: tuple[Format, ...] = (
    *MODEL_PROVIDERS,
    *CLOUDS,
    *DATABASES_AND_SECRET_STORES,
    *GIT_HOSTS,
    *CI_SERVICES,
    *PACKAGE_REGISTRIES,
    *OBSERVABILITY,
    *CHAT_AND_MAIL,
    *PAYMENT,
    *PRODUCTIVITY,
    *FIXED_FORMATS,
    *CONTEXT_FORMATS,
)
