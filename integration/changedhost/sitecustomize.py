"""Python runs this file by itself when its directory is on PYTHONPATH: so every process of a Hermes, the `hermes` command and the plugin
host among them, has the change before Hermes begins.
"""

import changedhost

changedhost.install()
