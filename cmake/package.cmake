# `./dev package`: a Debian package with the program, its man pages, its units and its documents.
include(GNUInstallDirs)
install(TARGETS ztape RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# The man pages are the help texts, so they are made by running the program: target `man`.
find_program(HELP2MAN help2man)
set(man_folder ${CMAKE_BINARY_DIR}/man)
if(HELP2MAN)
  set(man_script ${CMAKE_SOURCE_DIR}/packaging/man/make_pages.sh)
  add_custom_command(
    OUTPUT ${man_folder}/ztape.1
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${man_folder}
    COMMAND ${man_script} $<TARGET_FILE:ztape> ${PROJECT_VERSION} ${man_folder}
    DEPENDS ztape ${man_script} ${CMAKE_SOURCE_DIR}/packaging/man/ztape.h2m
    VERBATIM)
  add_custom_target(man DEPENDS ${man_folder}/ztape.1)
  # Compressed as Debian wants them; without the time, so that the same source makes the same package.
  install(CODE "file(GLOB pages ${man_folder}/*.1)
    foreach(page \${pages})
      get_filename_component(name \${page} NAME)
      execute_process(COMMAND gzip -9nc \${page} OUTPUT_FILE ${man_folder}/\${name}.gz COMMAND_ERROR_IS_FATAL ANY)
    endforeach()")
  install(DIRECTORY ${man_folder}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN *.1.gz)
endif()

# Where systemd looks on Debian 12, whatever the prefix.
file(GLOB units ${CMAKE_SOURCE_DIR}/packaging/systemd/*@*)
install(FILES ${units} DESTINATION lib/systemd/system)
install(FILES ${CMAKE_SOURCE_DIR}/packaging/systemd/proxy.conf DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)

file(GLOB pages ${CMAKE_SOURCE_DIR}/docs/*.md)
install(FILES README.md ${pages} capture-format/FORMAT.md proto/capture.proto DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${CMAKE_SOURCE_DIR}/packaging/debian/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
# Both changelogs under the names that Debian gives them.
foreach(changelog CHANGELOG.md=changelog packaging/debian/changelog=changelog.Debian)
  string(REPLACE "=" ";" changelog ${changelog})
  list(GET changelog 0 source)
  list(GET changelog 1 name)
  install(CODE "execute_process(COMMAND gzip -9nc ${CMAKE_SOURCE_DIR}/${source}
    OUTPUT_FILE ${CMAKE_BINARY_DIR}/${name}.gz COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${CMAKE_BINARY_DIR}/${name}.gz DESTINATION ${CMAKE_INSTALL_DOCDIR})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ztape)
set(CPACK_PACKAGE_CONTACT "the ztape developers <ztape@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "records, replays and compares gRPC traffic of Zcash light wallets")
set(CPACK_PACKAGE_DESCRIPTION "ztape sits between Zcash light wallets and an indexer, records what crosses
without changing it, and plays it back against other indexers: do they
answer the same, and how fast. It also finds out where a server loses 40
milliseconds to Nagle's algorithm and delayed acknowledgements.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
